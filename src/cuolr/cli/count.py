"""`cuolr count`: equal sessions of a click log as one row."""

from pathlib import Path

import tyro

from cuolr.cli.options import TimeFlags
from cuolr.cli.terminal import say, show_json, stage_bars
from cuolr.files import refuse_existing
from cuolr.logs.counting import count_log
from cuolr.logs.log_folder import SESSIONS_FILE


def count(
    log: tyro.conf.Positional[Path],
    out: Path,
    window: TimeFlags = TimeFlags(),
    json: bool = False,
    overwrite: bool = False,
) -> None:
    """Count the sessions of a click log: those with the same list, clicks, context and day become one row.

    A counted log is a click log: `train`, `assess`, `fit-clicks`, `log-info` and `merge-logs` take it, at a cost that
    follows its rows, not its sessions. It has no ids and no time of day.

    Args:
        log: Folder of the log.
        out: Folder of the counted log.
        window: Sessions to count, by time.
        json: Print JSON instead of a message.
        overwrite: Replace an existing log.
    """
    refuse_existing(out, overwrite, ours=SESSIONS_FILE)
    with stage_bars() as stages:
        counted = count_log(log, out, window.window(), overwrite, stages)
    if json:
        show_json({"out": str(out), "sessions": counted.sessions, "rows": len(counted)})
        return
    say(f"wrote {out}: {counted.sessions:,} sessions in {len(counted):,} rows")
