"""`cuolr merge-logs`: several click logs as one."""

from pathlib import Path

import tyro

from cuolr.cli.options import RetentionFlags
from cuolr.cli.terminal import say, show_json, stage_bars
from cuolr.files import refuse_existing
from cuolr.logs.log_folder import SESSIONS_FILE
from cuolr.logs.merge import merge_logs as merge
from cuolr.logs.merge_report import MergeReport


def merge_logs(
    logs: tyro.conf.Positional[tuple[Path, ...]],
    out: Path,
    keeping: RetentionFlags = RetentionFlags(),
    json: bool = False,
    overwrite: bool = False,
) -> None:
    """Merge click logs into one, such as those of the last four weeks.

    Queries are matched by their ids, documents by the ids within their query. A session that is in several logs is
    counted once. Where logs disagree, on a session or on the features of a document, the last one given counts.

    Args:
        logs: Folders of the logs, the latest last.
        out: Folder of the merged log.
        keeping: Sessions to keep, by time.
        json: Print JSON instead of messages.
        overwrite: Replace an existing log.
    """
    refuse_existing(out, overwrite, ours=SESSIONS_FILE)
    with stage_bars() as stages:
        report = merge(logs, out, keeping.window(), overwrite, stages)
    if json:
        show_json({"out": str(out), **report.as_dict()})
        return
    _tell(report)
    say(f"wrote {out}: {report.kept:,} sessions of {report.queries:,} queries and {report.documents:,} documents")


def _tell(report: MergeReport) -> None:
    if report.outside:
        queries = f", and {report.expired:,} queries with them" if report.expired else ""
        say(f"{report.outside:,} sessions are outside the time window: left out{queries}")
    if report.repeated:
        say(f"{report.repeated:,} sessions are in several logs, by their ids: counted once")
    if report.without_id:
        say(
            f"warning: {report.without_id:,} sessions have no session id and cannot be compared: any of them that are "
            "in several logs are counted more than once"
        )
    for path in report.overlapping:
        say(
            f"warning: {path}: made from the same log as one before it; rows have no ids, so sessions that are in both "
            "are counted twice. Leave it out, unless its sessions are of another time"
        )
    if report.differing:
        say(
            f"warning: {report.differing:,} of them have other lists or clicks in the other log; the last log counts. "
            "To keep a session that spans two files whole, import these files together"
        )
    if report.changed:
        say(f"note: the features of {report.changed:,} documents differ between logs; those of the last log are kept")
    for name in report.left_out:
        say(f"note: column '{name}' is left out, because not all logs have it")
