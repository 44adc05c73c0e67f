"""Options that `browse` and `explain` share."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cuolr.logs.log_folder import load_click_log
from cuolr.logs.time_window import ALL_TIME, TimeWindow
from cuolr.progress import Stages

if TYPE_CHECKING:
    from cuolr.browsing.browse_page import BrowsePage
    from cuolr.browsing.browsed_model import BrowsedModel

# Queries in the first view of a page.
PAGE_QUERIES = 200


@dataclass(frozen=True)
class DocumentFlags:
    """Documents and queries.

    Attributes:
        titles: Table with the columns doc_id, title and, for pictures, image: the path of a PNG, JPEG, GIF or WebP file
            of at most 100 kB. With a column query_id, a title is that of one query.
        min_sessions: Hide queries of fewer sessions, for people's privacy; 1 = show all.
    """

    titles: Path | None = None
    min_sessions: int = 10


def make_page(
    model: Path,
    log: Path,
    queries: int,
    stages: Stages,
    documents: DocumentFlags = DocumentFlags(),
    window: TimeWindow = ALL_TIME,
) -> "BrowsePage":
    """The page of a model beside a log.

    Args:
        model: Folder of the model.
        log: Folder of the log.
        queries: Number of queries in the first view.
        stages: Receives the progress.
        documents: Documents and queries.
        window: Sessions to use, by time.
    """
    # These need torch, which takes a second to load; no other command should wait for it.
    from cuolr.browsing.browse_page import BrowsePage
    from cuolr.browsing.overview import Overview
    from cuolr.off_policy.assess import assess
    from cuolr.policies.model_folder import provenance_of

    browsed = load_browsed(model, log, documents, window, stages)
    evaluation = assess(browsed.policy, browsed.log, None, provenance_of(model), stages, users=browsed.users)
    overview = Overview.of(browsed, evaluation, queries, stages)
    return BrowsePage(_name_of(model, "model"), _name_of(log, "log"), browsed, overview)


def _name_of(folder: Path, kind: str) -> str:
    """The name of a folder; with that of the folder above, if it only says what it is."""
    return "/".join(folder.resolve().parts[-2:]) if folder.name == kind else folder.name or str(folder)


def load_browsed(
    model: Path, log: Path, documents: DocumentFlags, window: TimeWindow, stages: Stages, curve: bool = True
) -> "BrowsedModel":
    """A model beside a log, as the options say; for a page with the examination curve, or without."""
    # These need torch, which takes a second to load; no other command should wait for it.
    from cuolr.browsing.browsed_model import BrowsedModel
    from cuolr.browsing.document_titles import DocumentTitles
    from cuolr.config import Range, check_arguments
    from cuolr.policies.model_folder import load_policy

    check_arguments(min_sessions=(documents.min_sessions, Range(1)))
    policy = load_policy(model)
    sessions = load_click_log(log, window, ids=False, stages=stages)
    titles = None if documents.titles is None else DocumentTitles.read(documents.titles, sessions.candidates)
    browsed = BrowsedModel.fit(policy, sessions, documents.min_sessions, stages, curve)
    return browsed if titles is None else browsed.with_titles(titles)
