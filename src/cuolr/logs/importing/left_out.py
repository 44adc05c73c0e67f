"""What is left out of an imported log: repeated rows, sessions outside a time window, and personal ids."""

from dataclasses import replace

import numpy as np
import polars as pl

from cuolr.data.tables import ROW
from cuolr.errors import InputError
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.hashed_ids import hash_ids
from cuolr.logs.importing.import_options import ImportOptions
from cuolr.logs.importing.import_report import MAX_EXAMPLES, OUTSIDE, REPEATED, Amounts, ImportFinding, ImportReport
from cuolr.logs.importing.log_rows import LogRows
from cuolr.logs.time_window import TimeWindow, unit_note


def without_repeats(rows: LogRows, shown: pl.DataFrame) -> tuple[pl.DataFrame, ImportFinding | None]:
    """The rows without those that equal an earlier one of the same session in every value.

    Documents without features are not compared: their ids are not known here.

    Args:
        rows: The table.
        shown: Its rows, resolved; see `resolve`.

    Returns:
        The other rows, and what was left out; None = nothing.
    """
    values = [name for name in shown.columns if name != ROW]
    comparable = shown.filter(pl.all_horizontal(pl.col("session", "index", "position").is_not_null()))
    again = comparable.sort(ROW).filter(~pl.struct(values).is_first_distinct())
    if not len(again):
        return shown, None
    examples = tuple(f"{rows.place(row)}: the same as an earlier row" for row in again[ROW].head(MAX_EXAMPLES))
    clicks = int((again["click"] == 1).sum())
    others = shown.join(again.select(ROW), on=ROW, how="anti", maintain_order="left")
    return others, ImportFinding(REPEATED, Amounts(0, len(again), clicks), examples)


def in_window(log: ClickLog, report: ImportReport, window: TimeWindow) -> tuple[ClickLog, ImportReport]:
    """The sessions in the time window, and the report with those outside."""
    if not window:
        return log, report
    if log.timestamp is None:
        raise InputError(
            "a time window needs timestamps, and the log has none; if a column of the table has them, name it with "
            "columns={'timestamp': 'NAME'}"
        )
    note = unit_note(log.timestamp.max())
    kept = window.select(log)
    outside = ImportFinding(OUTSIDE, _difference(_amounts(log), _amounts(kept)))
    report = replace(
        report,
        kept=_difference(report.kept, outside.amounts),
        dropped=(*report.dropped, outside) if len(kept) < len(log) else report.dropped,
        guesses=(*report.guesses, *([] if note is None else [note])),
    )
    return kept, report


def without_ids(log: ClickLog, options: ImportOptions) -> ClickLog:
    """The log without the ids of sessions, or with hashes in place of ids, if asked for."""
    if not options.session_ids:
        log = replace(log, session_id=None)
    return log if options.id_key is None else hash_ids(log, options.id_key)


def _amounts(log: ClickLog) -> Amounts:
    return Amounts(len(log), int(log.where.sum()), int(np.count_nonzero(log.clicks)))


def _difference(whole: Amounts, part: Amounts) -> Amounts:
    return Amounts(whole.sessions - part.sessions, whole.impressions - part.impressions, whole.clicks - part.clicks)
