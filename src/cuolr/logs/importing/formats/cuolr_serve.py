"""`cuolr-serve`: the log that `cuolr serve --log FOLDER` keeps; give the folder, or some of its files."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from cuolr.errors import InputError
from cuolr.files import require_file
from cuolr.logs.importing.importer import IMPORTERS, LogImporter, SourceCounts, SourceLog, SourceLoss
from cuolr.logs.importing.source_tables import in_turn, share_of_bytes
from cuolr.logs.served_log import event_rows, files_of_log, read_part, shown_rows
from cuolr.progress import Progress, no_progress

CLICK, REWARD = "click", "reward"
# A shown document.
SHOWN = ("request_id", "doc_id")
NOT_IN_LIST, NO_LIST = "click on a document that is not in the list", "click on a list that is not in the log"


@IMPORTERS.register("cuolr-serve")
class ServedLogImporter(LogImporter):
    """A session is a request. Events other than clicks are columns with the sum of their values, for `--reward`."""

    def read(self, files: Sequence[Path], progress: Progress = no_progress) -> SourceLog:
        """Read parts, and journals that are not yet parts."""
        found = [part for file in files for part in _parts(file)]
        read = []
        for _, part, advance in in_turn(found, share_of_bytes(found, progress)):
            read.append(read_part(part))
            advance(1)
        rows = pl.concat(read)
        shown, events = shown_rows(rows), event_rows(rows)
        if not len(shown):
            raise InputError("expected lists that were shown, found none; wait until the service has ranked something")
        clicks = events.filter((pl.col("event") == CLICK) & (pl.col("value") > 0)).select(SHOWN).unique()
        table = _with_events(shown, events, clicks)
        counts = {"lists": table["session_id"].n_unique(), "documents shown": len(shown), "events": len(events)}
        return SourceLog(
            table, report=SourceCounts("log of cuolr serve", counts), losses=(_lost_clicks(shown, clicks),)
        )


def _parts(file: Path) -> Iterator[Path]:
    """The files of a log, or one of them."""
    if file.is_dir():
        yield from files_of_log(file)
    else:
        require_file(file)
        yield file


def _with_events(shown: pl.DataFrame, events: pl.DataFrame, clicks: pl.DataFrame) -> pl.DataFrame:
    """The long table of a log: a column for clicks, and one for each other kind of event."""
    table = shown.join(clicks.with_columns(pl.lit(1, pl.UInt8()).alias(CLICK)), on=SHOWN, how="left")
    for kind in sorted(set(events["event"].to_list()) - {CLICK}):
        if kind in (*table.columns, "session_id"):
            raise InputError(f"event {kind!r}: expected a name of its own, found that of a column of the log")
        values = events.filter(pl.col("event") == kind).group_by(SHOWN).agg(pl.col("value").sum().alias(kind))
        table = table.join(values, on=SHOWN, how="left").with_columns(pl.col(kind).fill_null(0.0))
    if REWARD in table.columns:
        table = table.with_columns(pl.col(REWARD).cast(pl.Float64()))
    if (table["logging_propensity"] == 1).all():
        table = table.drop("logging_propensity")  # no list was randomised
    if table["user_id"].is_null().all():
        table = table.drop("user_id")
    return table.with_columns(pl.col(CLICK).fill_null(0)).rename({"request_id": "session_id"})


def _lost_clicks(shown: pl.DataFrame, clicks: pl.DataFrame) -> SourceLoss:
    """Clicks that belong to no shown document."""
    without_list = clicks.join(shown, on="request_id", how="anti")
    elsewhere = len(clicks.join(shown, on=SHOWN, how="anti")) - len(without_list)
    return SourceLoss("clicks", len(clicks), {NO_LIST: len(without_list), NOT_IN_LIST: elsewhere})
