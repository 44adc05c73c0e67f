"""`cuolr import-log`: check a click log of your own and convert it for training."""

from pathlib import Path

import tyro

from cuolr.cli.options import LetorFlags
from cuolr.cli.terminal import say, show_json, spinner
from cuolr.files import refuse_existing
from cuolr.logs.importing.import_log import import_log as read_log
from cuolr.logs.log_folder import SESSIONS_FILE, save_click_log


def import_log(
    table: tyro.conf.Positional[Path],
    features: Path,
    out: Path,
    k: int | None = None,
    json: bool = False,
    overwrite: bool = False,
    letor: LetorFlags = LetorFlags(),
) -> None:
    """Import a click log of your own: a table of shown and clicked documents, and the documents' features.

    The table has a row per shown document with the columns query_id, session_id, position (from 1), doc_id and click
    (0 or 1), and optionally logging_propensity, examination, timestamp and reward. All problems are reported at once,
    with their rows.

    Args:
        table: Parquet, CSV or JSON lines.
        features: LETOR with document ids after '#', or Parquet with query_id, doc_id and a column per feature.
        out: Folder of the log.
        k: Truncate lists to this length. By default the longest is kept.
        json: Print JSON instead of a message.
        overwrite: Replace an existing log.
        letor: How to read LETOR features.
    """
    refuse_existing(out, overwrite, ours=SESSIONS_FILE)
    with spinner(f"importing {table.name}"):
        log = read_log(table, features, k, letor.options())
        save_click_log(log, out, {"table": str(table), "features": str(features)}, overwrite)
    if json:
        show_json({"out": str(out), "sessions": log.sessions, "queries": log.candidates.n_queries, "k": log.k})
    else:
        say(f"wrote {out}: {log.sessions:,} sessions; describe it with: cuolr log-info {out}")
