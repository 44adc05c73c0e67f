"""Parquet files of sessions: that of a log folder, or parts that other jobs write for the documents of a log."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from cuolr.data.parquet_files import count_parquet_rows
from cuolr.data.tables import read_errors
from cuolr.errors import InputError
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.columns import IDS, check_rows, expected_types, to_numpy
from cuolr.types import Candidates, Ints

# Rows that are read at a time, to bound memory.
ROWS_AT_A_TIME = 1 << 19


@dataclass(frozen=True)
class SessionForm:
    """What the rows of a file are.

    Attributes:
        candidates: The documents that its queries and rankings index.
        k: Length of the lists.
        aggregated: See `ClickLog`.
        counted: See `ClickLog`.
    """

    candidates: Candidates
    k: int
    aggregated: bool = False
    counted: bool = False


def read_session_file(
    file: Path, form: SessionForm, rows: int, rows_at_a_time: int = ROWS_AT_A_TIME, without: Collection[str] = ()
) -> Iterator[ClickLog]:
    """Read a file chunk by chunk. Raises if its columns or values are not those of sessions.

    Args:
        file: The file.
        form: What its rows are.
        rows: Their number.
        rows_at_a_time: Rows of a chunk.
        without: Columns that are not read.
    """
    aggregated, counted = form.aggregated, form.counted
    with read_errors(file):
        sessions = pl.scan_parquet(file, glob=False)
        types = expected_types(file, sessions.collect_schema(), form.candidates, form.k, aggregated, counted)
    types = {name: dtype for name, dtype in types.items() if name not in without}
    for start in range(0, rows, rows_at_a_time):
        with read_errors(file):
            part = sessions.select(types.keys()).slice(start, rows_at_a_time)
            frame = part.cast(types).collect()  # type: ignore[arg-type]
        columns = {"count": one_each(len(frame))} | {c.name: to_numpy(file, c) for c in frame}
        if "last_click" in columns and not (counted and form.k == 1 and "page_position" in columns):
            raise InputError(f"{file}: unexpected column 'last_click': the log does not count documents")
        chunk = ClickLog.from_columns(form.candidates, columns, aggregated, counted)
        check_rows(file, chunk, start)
        yield chunk


def one_each(rows: int) -> Ints:
    """The counts of rows of one session each; takes no memory."""
    return np.broadcast_to(np.int64(1), (rows,))


def part_files(paths: Sequence[Path]) -> list[Path]:
    """The Parquet files among these files and in these folders, sorted within a folder."""
    files: list[Path] = []
    for path in paths:
        found = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
        if not found:
            raise InputError(f"{path}: expected Parquet files in this folder, found none")
        files += found
    missing = [f"{file}: file not found" for file in files if not file.is_file()]
    repeated = {file for file in files if files.count(file) > 1}
    if problems := [*missing, *(f"{file}: given twice" for file in sorted(repeated))]:
        raise InputError(problems)
    return files


def read_parts(files: Iterable[Path], form: SessionForm, without: Collection[str] = IDS) -> Iterator[ClickLog]:
    """The sessions of several files, chunk by chunk, without some columns; all have the columns of the first."""
    names: frozenset[str] | None = None
    for file in files:
        with read_errors(file):
            rows = count_parquet_rows(file)
        for chunk in read_session_file(file, form, rows, without=without):
            found = frozenset(chunk.columns)
            if names is not None and found != names:
                odd = ", ".join(sorted(found ^ names))
                raise InputError(f"{file}: expected the columns of the other parts; they differ in {odd}")
            names = found
            yield chunk
