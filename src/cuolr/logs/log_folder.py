"""A click log as a self-contained folder, all that training needs.

    sessions.parquet   a row per session (aggregated: per list; counted: per list and clicks, or per document at a
                       position, with last_click): query, ranking, clicks; where known: count, logging_propensity,
                       examination, timestamp, reward, page_position, randomised, session_id, user_id, context.<name>
    features.npy …     the candidates, see `candidate_store`
    meta.json          where the log comes from, for people, never for learners; a hash of each file, see `log_meta`

No relevance label is in any of them.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from polars.io.plugins import register_io_source

from cuolr.data.candidate_store import (
    DOCUMENT_IDS,
    FEATURE_NAMES,
    FEATURES,
    OFFSETS,
    QUERY_IDS,
    RECIPE,
    load_candidates,
    save_candidates,
)
from cuolr.data.compressed_files import count_parquet_rows
from cuolr.data.tables import read_errors, write_errors
from cuolr.data.text_sizes import check_parquet_texts
from cuolr.errors import InputError, problems_in
from cuolr.files import atomic_folder
from cuolr.logs.clicklog import LISTS_UNKNOWN, ClickLog
from cuolr.logs.columns import IDS, to_numpy
from cuolr.logs.log_meta import META_FILE as META_FILE
from cuolr.logs.log_meta import check_folder, check_log_files, write_meta
from cuolr.logs.log_meta import read_meta as read_meta
from cuolr.logs.session_files import ROWS_AT_A_TIME, SessionForm, one_each, read_session_file
from cuolr.logs.time_window import ALL_TIME, Time, Timestamps, TimeWindow, no_session_in, no_timestamps, within
from cuolr.progress import Progress, Stages, no_progress, no_stages

SESSIONS_FILE = "sessions.parquet"
REQUIRED_FILES = (SESSIONS_FILE, META_FILE, FEATURES, OFFSETS, QUERY_IDS)
# What a log writes itself; other files of its folder, such as propensities, are kept.
FILES = (*REQUIRED_FILES, DOCUMENT_IDS, FEATURE_NAMES, RECIPE)

# Rows of a Parquet row group; a reader can skip to any of them.
ROWS_PER_GROUP = 1 << 17


def save_click_log(
    log: ClickLog,
    folder: Path | str,
    source: Mapping[str, Any] | None = None,
    overwrite: bool = False,
    progress: Progress = no_progress,
) -> None:
    """Write a log; see `write_click_log`. `progress` is called with the rows that were written since the last call."""

    def chunks() -> Iterator[ClickLog]:
        for start in range(0, len(log), ROWS_AT_A_TIME):
            chunk = log.select(slice(start, start + ROWS_AT_A_TIME))
            yield chunk
            progress(len(chunk))

    write_click_log(Path(folder), chunks(), source, overwrite)


def write_click_log(
    folder: Path,
    chunks: Iterable[ClickLog],
    source: Mapping[str, Any] | None = None,
    overwrite: bool = False,
    more: Callable[[Path], None] | None = None,
) -> None:
    """Write a log in chunks, of which only a few are in memory at a time. All or nothing.

    Args:
        folder: The folder to create.
        chunks: Logs over the same candidates and with the same columns; the file does not record their boundaries.
        source: Provenance of the log, as JSON types.
        overwrite: Whether an existing log is replaced. A folder that is not a log is never replaced.
        more: Writes other files to the folder before it is renamed to its final name.
    """
    with atomic_folder(folder, overwrite, ours=SESSIONS_FILE) as unfinished:
        chunks = iter(chunks)
        first = next(chunks, None)
        if first is None:
            raise InputError(f"{folder}: expected at least one session to write, found none")
        with write_errors(folder / SESSIONS_FILE):
            rows, sessions = _write_sessions(unfinished / SESSIONS_FILE, first, chunks)
        save_candidates(first.candidates, unfinished)
        if more is not None:
            more(unfinished)
        facts = {
            "aggregated": first.aggregated,
            "counted": first.counted,
            "of_documents": first.of_documents,
            "k": first.k,
        }
        write_meta(unfinished, {**facts, "rows": rows, "sessions": sessions}, source or {})


def load_click_log(
    folder: Path | str,
    window: TimeWindow = ALL_TIME,
    ids: bool = True,
    stages: Stages = no_stages,
    documents: bool = False,
) -> ClickLog:
    """Read a whole log; features are memory-mapped. Raises if the folder is damaged or not a log.

    Args:
        folder: The folder.
        window: The sessions to read.
        ids: Whether to read the ids of sessions and users, which no learner needs.
        stages: Receives the rows that were read so far.
        documents: Whether the log may count documents; otherwise it is an error, because its lists are not known.
    """
    folder = Path(folder)
    rows = _count_rows(folder, stages) if not window else _count_within(folder, window)
    return concatenate(read_click_log(folder, window=window, ids=ids, stages=stages, documents=documents), rows)


def read_click_log(
    folder: Path,
    rows_at_a_time: int = ROWS_AT_A_TIME,
    window: TimeWindow = ALL_TIME,
    ids: bool = True,
    stages: Stages = no_stages,
    documents: bool = False,
) -> Iterator[ClickLog]:
    """Read a log chunk by chunk, for logs that are larger than memory; see `load_click_log`."""
    rows = _count_rows(folder, stages)
    file, meta, candidates = folder / SESSIONS_FILE, read_meta(folder), load_candidates(folder)
    if meta["of_documents"] and not documents:
        raise InputError(f"{folder}: {LISTS_UNKNOWN}")
    with read_errors(file):
        stored = pl.scan_parquet(file, glob=False).collect_schema()
    if meta["of_documents"] != ("last_click" in stored):
        raise InputError(f"{file}: expected last_click and page_position if the log counts documents, and only then")
    form = SessionForm(candidates, meta["k"], meta["aggregated"], meta["counted"])
    bounds = _bounds(folder, window)
    progress = stages(f"reading {folder.name}", rows)
    for chunk in read_session_file(file, form, rows, rows_at_a_time, () if ids else IDS):
        kept = chunk
        if bounds is not None:
            assert chunk.timestamp is not None
            kept = chunk.select(np.flatnonzero(within(chunk.timestamp, bounds)))
        if len(kept):
            yield kept
        progress(len(chunk))


def read_timestamps(folder: Path) -> Timestamps | None:
    """[M] the timestamps of a log; None if it has none."""
    return read_column(folder, "timestamp")


def read_column(folder: Path, name: str) -> npt.NDArray[Any] | None:
    """[M] one column of a log, without checks; None if the log does not have it."""
    _count_rows(folder)
    file = folder / SESSIONS_FILE
    with read_errors(file):
        sessions = pl.scan_parquet(file, glob=False)
        if name not in sessions.collect_schema():
            return None
        check_parquet_texts(file, (name,))
        return to_numpy(file, sessions.select(name).collect()[name])


def concatenate(chunks: Iterable[ClickLog], rows: int) -> ClickLog:
    """One log from chunks with `rows` rows in total; memory holds the log and one chunk."""
    columns: dict[str, npt.NDArray[Any]] = {}
    first: ClickLog | None = None
    end = 0
    for chunk in chunks:
        if first is None:
            first = chunk
        for name, values in _stored_columns(chunk).items():
            if name not in columns:
                columns[name] = np.empty((rows, *values.shape[1:]), values.dtype)
            elif columns[name].dtype.kind == "U":  # strings of a later chunk may be longer
                columns[name] = columns[name].astype(np.result_type(columns[name], values), copy=False)
            columns[name][end : end + len(chunk)] = values
        end += len(chunk)
    assert first is not None, "a log has at least one chunk"
    assert end == rows, (end, rows)
    return ClickLog.from_columns(first.candidates, {"count": one_each(rows)} | columns, first.aggregated, first.counted)


def _stored_columns(log: ClickLog) -> dict[str, npt.NDArray[Any]]:
    """The columns to store; counts only if they may be more than 1."""
    return {name: values for name, values in log.columns.items() if name != "count" or not log.of_sessions}


def _frame(log: ClickLog) -> pl.DataFrame:
    """The rows as they are stored, with 0 and 1 as Booleans, which take a third of the time to write."""
    frame = pl.DataFrame(_stored_columns(log))
    return frame.cast({pl.Array(pl.UInt8, log.k): pl.Array(pl.Boolean, log.k)})


def _write_sessions(file: Path, first: ClickLog, chunks: Iterator[ClickLog]) -> tuple[int, int]:
    """Write the Parquet file.

    Returns:
        The number of rows and of sessions.
    """
    rows = sessions = 0

    def frames(columns: list[str] | None, *_: object) -> Iterator[pl.DataFrame]:
        nonlocal rows, sessions
        for chunk in itertools.chain([first], chunks):
            rows += len(chunk)
            sessions += chunk.sessions
            yield _frame(chunk) if columns is None else _frame(chunk).select(columns)

    register_io_source(frames, schema=_frame(first.select(slice(0, 1))).schema).sink_parquet(
        file, compression="zstd", compression_level=1, row_group_size=ROWS_PER_GROUP, statistics=False
    )
    return rows, sessions


def _bounds(folder: Path, window: TimeWindow) -> tuple[Time, Time] | None:
    """The window in the unit of the log's timestamps; None = everything. Raises if no session is in it."""
    if not window:
        return None
    timestamp = read_timestamps(folder)
    with problems_in(folder):
        if timestamp is None:
            raise no_timestamps(read_meta(folder)["aggregated"])
        bounds = window.bounds(timestamp.max())
        if not within(timestamp, bounds).any():
            raise no_session_in(window, timestamp.min(), timestamp.max())
    return bounds


def _count_within(folder: Path, window: TimeWindow) -> int:
    bounds, timestamp = _bounds(folder, window), read_timestamps(folder)
    assert bounds is not None
    assert timestamp is not None
    return int(within(timestamp, bounds).sum())


def _count_rows(folder: Path, stages: Stages = no_stages) -> int:
    """Number of rows of a log; raises if a file is missing or damaged."""
    check_folder(folder)
    missing = [name for name in REQUIRED_FILES if not (folder / name).is_file()]
    if missing:
        if (folder / "model.json").is_file():
            raise InputError(f"{folder}: expected a click log, found a model")
        raise InputError(f"{folder}: not a click log: it has no {', '.join(missing)}")
    check_log_files(folder, FILES, stages)
    file = folder / SESSIONS_FILE
    with read_errors(file):
        rows = count_parquet_rows(file, texts=())  # the texts of those columns that are read, later
    if not rows:
        raise InputError(f"{file}: expected at least one session, found none")
    return rows
