"""Parts from journals: written whole or not at all, and only then is the journal removed."""

import logging
import os
from pathlib import Path

import polars as pl

from cuolr.errors import InputError
from cuolr.files import UNFINISHED, atomic_file
from cuolr.logs.served_log import NUMBERED, PART, read_journal

log = logging.getLogger("cuolr.serving")


def compact(journal: Path) -> None:
    """Make a part of a journal. If it fails, the journal stays, and is read in its place."""
    match = NUMBERED.fullmatch(journal.name)
    assert match is not None, journal
    part = journal.with_name(PART.format(int(match[2])))
    try:
        if not part.exists():
            rows = read_journal(journal)
            if len(rows):
                _write(rows, part)
        journal.unlink()
    except (OSError, InputError, pl.exceptions.PolarsError) as error:
        log.warning("%s: no part was made of it (%s); it is read as it is", journal.name, error)


def compact_all(folder: Path) -> None:
    """Make parts of the journals that a crash left behind, and remove unfinished files."""
    for unfinished in folder.glob(UNFINISHED):
        unfinished.unlink(missing_ok=True)
    for path in sorted(folder.iterdir()):
        match = NUMBERED.fullmatch(path.name)
        if match is not None and match[1] == "journal":
            compact(path)


def _write(rows: pl.DataFrame, part: Path) -> None:
    """Write a part that survives the loss of power: its content, then its name."""
    with atomic_file(part) as unfinished:
        rows.write_parquet(unfinished, compression="zstd")
        _sync(unfinished)
    _sync(part.parent)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
