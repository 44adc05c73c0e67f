"""`cuolr browse`: a page that shows what a model would change, and what the clicks say about it."""

from dataclasses import dataclass
from pathlib import Path

import tyro

from cuolr.cli.browse_options import PAGE_QUERIES, DocumentFlags, make_page
from cuolr.cli.options import TimeFlags
from cuolr.cli.terminal import say, stage_bars
from cuolr.config import Range, check_arguments
from cuolr.files import atomic_file, check_files, check_suffix


@dataclass(frozen=True)
class PageFlags:
    """The page.

    Attributes:
        static: Write the page to this file (.html) instead of serving it. It is self-contained.
        queries: Number of queries in the first view: the worst estimated losses and the largest gains. A page in a
            file has these only; that of a server finds the others by their name.
        port: Port of the server on the loopback address; 0 = any that is free.
    """

    static: Path | None = None
    queries: int = PAGE_QUERIES
    port: int = 8421


def browse(
    model: tyro.conf.Positional[Path],
    log: tyro.conf.Positional[Path],
    page: PageFlags = PageFlags(),
    documents: DocumentFlags = DocumentFlags(),
    window: TimeFlags = TimeFlags(),
    overwrite: bool = False,
) -> None:
    """Show what a model would change, query by query, and what the clicks of a log say about it.

    The first view has the recommendation of `cuolr assess`, queries by traffic times change, worst estimated losses
    first, and the examination curve. A query shows production's list beside the model's. Each document has its
    impressions by position, clicks, examination-corrected click rate, whether these justify its move, and the features
    that drive its score.

    The server answers this machine only, until Ctrl-C. Neither it nor the page uses the network.

    Args:
        model: Folder of a trained model.
        log: Folder of a click log with the same features.
        page: The page.
        documents: Documents and queries.
        window: Sessions to use, by time.
        overwrite: Replace an existing file.
    """
    check_arguments(queries=(page.queries, Range(1)), port=(page.port, Range(0, 65_535)))
    if page.static is not None:
        check_suffix(page.static, (".html",))
        check_files((page.static,), overwrite)
    # It needs torch, which takes a second to load; no other command should wait for it.
    from cuolr.browsing.browse_server import BrowsePages, browse_server

    with stage_bars() as stages:
        made = make_page(model, log, page.queries, stages, documents, window.window())
        overview = made.overview
        if page.static is not None:
            text = made.with_all_queries(stages)
            page.static.parent.mkdir(parents=True, exist_ok=True)
            with atomic_file(page.static) as file:
                file.write_text(text, encoding="utf-8")
    if page.static is not None:
        left = f" of {overview.shown:,}" if overview.shown > len(overview.rows) else ""
        say(f"wrote {page.static}: {len(overview.rows):,}{left} queries, {len(text.encode()) / 1e6:.1f} MB")
        return
    with browse_server(BrowsePages(made), page.port) as server:
        say(f"serving http://{server.server_address[0]!s}:{server.server_address[1]}/ (Ctrl-C stops)")
        server.serve_forever()
