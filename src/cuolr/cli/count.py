"""`cuolr count`: equal sessions of a click log as one row."""

from pathlib import Path

import tyro

from cuolr.cli.cell_options import Address
from cuolr.cli.options import TimeFlags
from cuolr.cli.terminal import say, show_json, stage_bars
from cuolr.errors import InputError
from cuolr.files import refuse_existing
from cuolr.logs.count_parts import count_parts
from cuolr.logs.counting import CountedBy, count_log
from cuolr.logs.log_folder import SESSIONS_FILE

# Rows for each session from which on counting by list saves little.
LITTLE_SAVED = 0.5
# So many rows need not be fewer.
FEW_ROWS = 100_000


def count(
    log: tyro.conf.Positional[Path],
    parts: tyro.conf.Positional[tuple[str, ...]] = (),
    *,
    out: Path,
    by: CountedBy = "list",
    ray: Address | None = None,
    window: TimeFlags = TimeFlags(),
    json: bool = False,
    overwrite: bool = False,
) -> None:
    """Count the sessions of a click log: those with the same list, clicks, context and day become one row.

    A counted log is a click log: `train`, `assess`, `fit-clicks`, `log-info` and `merge-logs` take it, at a cost that
    follows its rows, not its sessions. It has no ids and no time of day.

    If the logging policy is stochastic, nearly every session has a list of its own. Counted by document, rows are
    bounded by documents and positions; what needs lists then says so.

    Args:
        log: Folder of the log.
        parts: Parquet files with the columns of the log's `sessions.parquet`, or folders of them. Their sessions are
            counted instead of the log's; queries and documents are those of the log. Addresses such as
            s3://bucket/day are read by fsspec (`pip install 'cuolr[bucket]'`, and s3fs, gcsfs or adlfs).
        out: Folder of the counted log.
        by: What a row is: a list with its clicks, or a document at a position with the last click above it.
        ray: Address of a Ray cluster that counts the parts; its nodes need to see them. Needs `pip install
            'cuolr[ray]'`.
        window: Sessions to count, by time; not with parts.
        json: Print JSON instead of a message.
        overwrite: Replace an existing log.
    """
    refuse_existing(out, overwrite, ours=SESSIONS_FILE)
    with stage_bars() as stages:
        if parts:
            if window.window():
                raise InputError("--since, --until: not with parts; give the parts of these days")
            counted = count_parts(log, parts, out, by, ray, overwrite, stages)
        elif ray is not None:
            raise InputError("--ray: expected Parquet parts to count, found none")
        else:
            counted = count_log(log, out, window.window(), overwrite, stages, by)
    if json:
        show_json({"out": str(out), "sessions": counted.sessions, "rows": len(counted)})
        return
    say(f"wrote {out}: {counted.sessions:,} sessions in {len(counted):,} rows")
    if by == "list" and len(counted) > max(LITTLE_SAVED * counted.sessions, FEW_ROWS):
        say("note: nearly all sessions differ; --by document has rows bounded by documents and positions")
