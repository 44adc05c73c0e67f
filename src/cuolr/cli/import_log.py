"""`cuolr import-log`: your own log, checked and made ready to train from."""

from pathlib import Path
from typing import Literal

import tyro

from cuolr.cli.terminal import say
from cuolr.data.letor.reader import LetorOptions
from cuolr.files import refuse_existing
from cuolr.log_import import import_log as read_log
from cuolr.logs.log_folder import SESSIONS_FILE, save_click_log


def import_log(
    table: tyro.conf.Positional[Path],
    features: Path,
    out: Path,
    k: int | None = None,
    zero_based: bool = False,
    missing: Literal["zero", "minimum"] = "zero",
    overwrite: bool = False,
) -> None:
    """Read your own click log: a table of what was shown and clicked, and the documents' features.

    The table has a row per shown document: query_id, session_id, position (from 1), doc_id, click (0 or 1), and
    where known logging_propensity, examination and timestamp.

    Args:
        table: Parquet, CSV or JSON lines.
        features: LETOR with document ids after '#', or Parquet with query_id, doc_id and a column per feature.
        out: Folder of the log.
        k: Cut lists at this length; by default the longest is kept.
        zero_based: LETOR features: indices start at 0, not at 1.
        missing: LETOR features: what NULL becomes, 0 or the feature's least value in the file.
        overwrite: Replace the log if it is there.
    """
    refuse_existing(out, overwrite, ours=SESSIONS_FILE)
    log = read_log(table, features, k, LetorOptions(zero_based, missing))
    save_click_log(log, out, {"table": str(table), "features": str(features)}, overwrite)
    say(f"wrote {out}: {log.sessions:,} sessions; look at it with: cuolr log-info {out}")
