"""Parts from journals: written whole or not at all, and only then is the journal removed."""

import logging
from pathlib import Path

import polars as pl

from cuolr.errors import InputError
from cuolr.files import atomic_file
from cuolr.logs.served_log import NUMBERED, PART, read_journal
from cuolr.output_lock import clean

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
    clean(folder)
    for path in sorted(folder.iterdir()):
        match = NUMBERED.fullmatch(path.name)
        if match is not None and match[1] == "journal":
            compact(path)


def _write(rows: pl.DataFrame, part: Path) -> None:
    with atomic_file(part) as unfinished:
        rows.write_parquet(unfinished, compression="zstd")
