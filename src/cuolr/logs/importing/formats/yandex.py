"""`yandex`: the log of the Yandex relevance prediction challenge, tab-separated actions."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from cuolr.errors import InputError
from cuolr.logs.importing.importer import IMPORTERS, LogImporter, SourceCounts, SourceLog, SourceLoss
from cuolr.logs.importing.source_tables import in_turn, read_fields, share_of_bytes
from cuolr.progress import Progress, Share, no_progress, share_of

# SessionID, TimePassed, TypeOfAction, QueryID or URLID, RegionID, ten URLs.
LONGEST = 10
COLUMNS = ("session", "time", "action", "id", "region", *(f"url_{i}" for i in range(1, LONGEST + 1)))

# The shares of the time to read lines and to list what they show, roughly; the rest is to find what was clicked.
READING, LISTING = 0.2, 0.4
LISTS_AT_A_TIME = 1 << 16

NOT_SHOWN = "clicks on a URL that no earlier list of the session shows"
NO_ACTION = "lines that are no action"


@IMPORTERS.register("yandex")
class YandexImporter(LogImporter):
    """A list for each query action `Q`; a click `C` belongs to the latest list of its session that shows the URL."""

    def read(self, files: Sequence[Path], progress: Progress = no_progress) -> SourceLog:
        """Read one or more files of tab-separated actions."""
        done = share_of_bytes(files, progress)
        read = [read_fields(file, COLUMNS, advance) for _, file, advance in in_turn(files, share_of(done, READING))]
        actions = pl.concat(read).with_row_index("line")
        shown = _shown(actions, share_of(done, LISTING))
        if not len(shown):
            raise InputError(f"{files[0]}: expected query actions 'Q' with the URLs that were shown, found none")
        clicks = actions.filter(pl.col("action") == "C").select("line", "session", doc_id="id")
        placed = _placed(clicks, shown)
        done(1 - READING - LISTING)
        table = (
            shown.join(
                placed.select("session_id", "doc_id", click=pl.lit(1)).unique(), ["session_id", "doc_id"], "left"
            )
            .with_columns(pl.col("click").fill_null(0))
            .select("query_id", "session_id", "position", "doc_id", "click")
        )
        again, lost = len(placed) - int(table["click"].sum()), len(clicks) - len(placed)
        other = len(actions) - int(actions["action"].is_in(["Q", "C"]).sum())
        counts = {
            "lists": shown["session_id"].n_unique(),
            "clicks": len(clicks),
            "clicks again on the same document": again,
            f"{NOT_SHOWN}: dropped": lost,
            f"{NO_ACTION}: dropped": other,
        }
        losses = (
            SourceLoss("clicks", len(clicks) - again, {NOT_SHOWN: lost}),
            SourceLoss("lines", len(actions), {NO_ACTION: other}),
        )
        return SourceLog(table, report=SourceCounts("Yandex actions", counts), losses=losses)


def _shown(actions: pl.DataFrame, progress: Share) -> pl.DataFrame:
    """A row per shown document: line and session of the list, session_id (its number), query_id, position, doc_id."""
    lists = actions.filter(pl.col("action") == "Q").select(
        "line",
        "session",
        *COLUMNS[-LONGEST:],
        session_id=pl.int_range(pl.len(), dtype=pl.Int64),
        query_id="id",
    )
    urls = pl.concat_list(COLUMNS[-LONGEST:]).alias("doc_id")
    positions = pl.lit(list(range(1, LONGEST + 1)), pl.List(pl.Int64)).alias("position")
    shown = []
    for some in lists.iter_slices(LISTS_AT_A_TIME):
        rows = some.select("line", "session", "session_id", "query_id", urls, positions).explode("doc_id", "position")
        shown.append(rows.drop_nulls("doc_id"))
        progress(len(some) / len(lists))
    return pl.concat(shown) if shown else pl.DataFrame()


def _placed(clicks: pl.DataFrame, shown: pl.DataFrame) -> pl.DataFrame:
    """The clicks with the list that they belong to; others are left out."""
    return (
        clicks.sort("line")
        .join_asof(
            shown.select("line", "session", "doc_id", "session_id").sort("line"),
            on="line",
            by=["session", "doc_id"],
            strategy="backward",
            check_sortedness=False,
        )
        .drop_nulls("session_id")
    )
