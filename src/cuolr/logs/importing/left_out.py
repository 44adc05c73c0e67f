"""What the caller asked to leave out of an imported log: sessions outside a time window, and personal ids."""

from dataclasses import replace

import numpy as np

from cuolr.logs.clicklog import ClickLog
from cuolr.logs.hashed_ids import hash_ids
from cuolr.logs.importing.import_options import ImportOptions
from cuolr.logs.importing.import_report import OUTSIDE, Amounts, ImportFinding, ImportReport
from cuolr.logs.time_window import require_timestamps, unit_note


def without_what_is_left_out(
    log: ClickLog, report: ImportReport, options: ImportOptions
) -> tuple[ClickLog, ImportReport]:
    """The sessions in the time window, with the ids that are kept, and the report with what is left out."""
    if options.window:
        latest = require_timestamps(log).max()
        note = unit_note(latest)
        kept = options.window.select(log)
        outside = ImportFinding(OUTSIDE, _difference(_amounts(log), _amounts(kept)))
        dropped = (*report.dropped, outside) if len(kept) < len(log) else report.dropped
        report = replace(
            report,
            kept=_difference(report.kept, outside.amounts),
            dropped=dropped,
            guesses=(*report.guesses, *([] if note is None else [note])),
        )
        log = kept
    if not options.session_ids:
        log = replace(log, session_id=None)
    return log if options.id_key is None else hash_ids(log, options.id_key), report


def _amounts(log: ClickLog) -> Amounts:
    return Amounts(len(log), int(log.where.sum()), int(np.count_nonzero(log.clicks)))


def _difference(whole: Amounts, part: Amounts) -> Amounts:
    return Amounts(whole.sessions - part.sessions, whole.impressions - part.impressions, whole.clicks - part.clicks)
