"""Parquet files of sessions: that of a log folder, or parts that other jobs write for it; and sums of their chunks."""

import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from cuolr.data.compressed_files import count_parquet_rows
from cuolr.data.tables import read_errors
from cuolr.data.text_sizes import check_parquet_texts
from cuolr.errors import InputError, load_extra
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.columns import IDS, check_rows, expected_types, to_numpy
from cuolr.types import Candidates, Ints

# Rows that are read at a time, to bound memory.
ROWS_AT_A_TIME = 1 << 19
# Share of the rows that are left after grouping, up to which it is worth it.
WORTH_GROUPING = 0.5

# A file; or its address in a store that fsspec reads, such as s3://bucket/day/part.parquet.
Part: TypeAlias = Path | str


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
    _check_texts(file, form, without)
    for start in range(0, rows, rows_at_a_time):
        yield _sessions(file, form, slice(start, min(start + rows_at_a_time, rows)), without)


def one_each(rows: int) -> Ints:
    """The counts of rows of one session each; takes no memory."""
    return np.broadcast_to(np.int64(1), (rows,))


def part_files(paths: Sequence[Part]) -> list[Part]:
    """The Parquet files among these files and in these folders, sorted within a folder; here or in a store."""
    files: list[Part] = []
    missing: list[str] = []
    for path in map(_part, paths):
        is_folder, is_file, inside = _listed(path) if isinstance(path, str) else _listed_here(path)
        if is_folder and not inside:
            raise InputError(f"{path}: expected Parquet files in this folder, found none")
        if not is_folder and not is_file:
            missing.append(f"{path}: file not found")
        files += inside if is_folder else [path]
    repeated = {str(file) for file in files if files.count(file) > 1}
    if problems := [*missing, *(f"{file}: given twice" for file in sorted(repeated))]:
        raise InputError(problems)
    return files


@contextmanager
def fetched(part: Part) -> Iterator[Path]:
    """A part as a file here: one that is in a store is copied for as long as it is read."""
    if isinstance(part, Path):
        yield part
        return
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place) / "part.parquet"
        with _store_errors(part):
            store, path = _store(part)
            store.get_file(path, str(copy))
        try:
            yield copy
        except InputError as error:
            raise InputError([problem.replace(str(copy), part) for problem in error.problems]) from None


def _part(path: Part) -> Part:
    return path if isinstance(path, str) and "://" in path else Path(path)


def _listed_here(path: Path) -> tuple[bool, bool, list[Part]]:
    """Whether it is a folder, whether it is a file, and the Parquet files in the folder."""
    return path.is_dir(), path.is_file(), [*sorted(path.glob("*.parquet"))]


def _listed(address: str) -> tuple[bool, bool, list[Part]]:
    """Likewise in a store."""
    with _store_errors(address):
        store, path = _store(address)
        if not store.isdir(path):
            return False, store.isfile(path), []
        inside = sorted(store.glob(f"{path.rstrip('/')}/*.parquet"))
        return True, False, [store.unstrip_protocol(name) for name in inside]


def _store(address: str) -> tuple[Any, str]:
    """The file system of an address, and the path in it."""
    fsspec = load_extra("fsspec", "bucket", "fsspec is not installed, which reads addresses such as s3://")
    store, path = fsspec.core.url_to_fs(address)
    return store, path


@contextmanager
def _store_errors(address: str) -> Iterator[None]:
    """Whatever a store raises, about credentials, connections or a missing package, is one line."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"{address}: cannot be read: {reason}") from None


def rows_of(file: Path) -> int:
    """Number of sessions of a file, without reading it; raises if it is no Parquet file."""
    with read_errors(file):
        return count_parquet_rows(file, texts=())  # the texts of those columns that are read, later


def read_parts(files: Iterable[Part], form: SessionForm, without: Collection[str] = IDS) -> Iterator[ClickLog]:
    """The sessions of several files, chunk by chunk, without some columns; all have the columns of the first.

    Equal sessions of a chunk are one counted row, as long as that makes them far fewer: polars groups them several
    times as fast as they are checked one by one.
    """
    names: frozenset[str] | None = None
    grouped = True
    for each in files:
        with fetched(each) as file:
            rows = rows_of(file)
            _check_texts(file, form, without)
            for start in range(0, rows, ROWS_AT_A_TIME):
                part = slice(start, min(start + ROWS_AT_A_TIME, rows))
                chunk = _equal_sessions(file, form, part, without) if grouped else _sessions(file, form, part, without)
                grouped = grouped and len(chunk) <= WORTH_GROUPING * (part.stop - part.start)
                found = frozenset(chunk.columns)
                if names is not None and found != names:
                    odd = ", ".join(sorted(found ^ names))
                    raise InputError(f"{file}: expected the columns of the other parts; they differ in {odd}")
                names = found
                yield chunk


def _equal_sessions(file: Path, form: SessionForm, rows: slice, without: Collection[str]) -> ClickLog:
    """These rows of a file, each with the number of its equals; times of a day are equal."""
    with read_errors(file):
        selected, types = _scan(file, form, without)
        days = [pl.col(name).dt.truncate("1d") for name, dtype in types.items() if dtype == pl.Datetime]
        part = selected.slice(rows.start, rows.stop - rows.start).cast(types)  # type: ignore[arg-type]
        frame = part.with_columns(days).group_by(list(types)).agg(count=pl.len().cast(pl.Int64)).collect()
    try:
        return _chunk(file, replace(form, counted=True), frame, rows.start)
    except InputError:
        _sessions(file, form, rows, without)  # to say which row it is
        raise


def _sessions(file: Path, form: SessionForm, rows: slice, without: Collection[str]) -> ClickLog:
    """These rows of a file; raises if their columns or values are not those of sessions."""
    with read_errors(file):
        selected, types = _scan(file, form, without)
        part = selected.slice(rows.start, rows.stop - rows.start)
        frame = part.cast(types).collect()  # type: ignore[arg-type]
    return _chunk(file, form, frame, rows.start)


def _scan(file: Path, form: SessionForm, without: Collection[str]) -> tuple[pl.LazyFrame, dict[str, pl.DataType]]:
    """The file without some columns, and the types to read it as."""
    sessions = pl.scan_parquet(file, glob=False)
    stored = sessions.collect_schema()
    types = expected_types(file, stored, form.candidates, form.k, form.aggregated, form.counted)
    types = {name: dtype for name, dtype in types.items() if name not in without}
    return sessions.select(types.keys()), types


def _check_texts(file: Path, form: SessionForm, without: Collection[str]) -> None:
    """Raise if the columns that are read hold far more text than the file can."""
    with read_errors(file):
        _, types = _scan(file, form, without)
        check_parquet_texts(file, [name for name, dtype in types.items() if dtype == pl.String])


def _chunk(file: Path, form: SessionForm, frame: pl.DataFrame, first_row: int) -> ClickLog:
    columns = {"count": one_each(len(frame))} | {c.name: to_numpy(file, c) for c in frame}
    if "last_click" in columns and not (form.counted and form.k == 1 and "page_position" in columns):
        raise InputError(f"{file}: unexpected column 'last_click': the log does not count documents")
    chunk = ClickLog.from_columns(form.candidates, columns, form.aggregated, form.counted)
    check_rows(file, chunk, first_row)
    return chunk


def merged_frames(frames: Iterable[pl.DataFrame], merge: Callable[[list[pl.DataFrame]], pl.DataFrame]) -> pl.DataFrame:
    """Merge tables as they come; memory grows with the rows of the result.

    Args:
        frames: At least one; each has a key once.
        merge: Adds up the rows of tables that have the same key.
    """
    waiting: list[pl.DataFrame] = []
    rows_after_merge = 0
    for frame in frames:
        waiting.append(frame)
        # Merging only after the number of rows has doubled keeps the total cost linear.
        if sum(map(len, waiting)) > 2 * rows_after_merge + ROWS_AT_A_TIME:
            waiting = [merge(waiting)]
            rows_after_merge = len(waiting[0])
    return waiting[0] if len(waiting) == 1 else merge(waiting)
