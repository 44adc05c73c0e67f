"""What the caller asked to leave out of an imported log: sessions outside a time window, and personal ids."""

from dataclasses import replace

import numpy as np

from cuolr.errors import InputError
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.hashed_ids import hash_ids
from cuolr.logs.importing.import_options import ImportOptions
from cuolr.logs.importing.import_report import OUTSIDE, Amounts, ImportFinding, ImportReport
from cuolr.logs.time_window import TimeWindow, unit_note


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
