"""Counting: sessions that are equal in all that learners use become one row with their number.

Counted by list, nothing but the ids and the time of day is lost, so what is learned from a counted log is what is
learned from the sessions. Counted by document (`document_counting`), lists are lost, too. Counts add up: those of 28
days are the counts of each day, merged.
"""

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from cuolr.errors import InputError
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.columns import IDS, text_array
from cuolr.logs.document_counting import documents_frame, log_of_documents
from cuolr.logs.identity import COUNTED, described
from cuolr.logs.log_folder import read_click_log, read_meta, write_click_log
from cuolr.logs.log_forms import require_lists, require_sessions
from cuolr.logs.merging_frames import merged_frames
from cuolr.logs.time_window import ALL_TIME, TimeWindow, as_times
from cuolr.progress import Stages, unseen_stages

COUNT = "count"
# What a row of a counted log is: a list with its clicks, or a document at a position.
CountedBy: TypeAlias = Literal["list", "document"]


def count_log(
    folder: Path,
    out: Path,
    window: TimeWindow = ALL_TIME,
    overwrite: bool = False,
    stages: Stages = unseen_stages,
    by: CountedBy = "list",
) -> ClickLog:
    """Count a saved log in chunks, and write the counted log; memory grows with its rows only.

    Args:
        folder: A log of sessions, or a counted one.
        out: The folder to create.
        window: The sessions to count.
        overwrite: Whether an existing log is replaced.
        stages: Receives the rows that were read so far.
        by: What a row is.
    """
    documents = by == "document"
    counted = count_chunks(read_click_log(folder, window=window, ids=False, stages=stages, documents=documents), by)
    meta = read_meta(folder)
    source = {name: value for name, value in meta.get("source", {}).items() if name != COUNTED}
    write_click_log(out, [counted], {**source, COUNTED: described(folder, meta)}, overwrite)
    return counted


def count_chunks(chunks: Iterable[ClickLog], by: CountedBy = "list") -> ClickLog:
    """A row for each query, list, clicks, rewards, context and day that occur, sorted, with the number of its sessions.

    By document, for each query, document, position, last click above, click, reward, context and day. Ids are dropped,
    and timestamps become days (UTC); those that are no times are dropped.

    Args:
        chunks: Raw or counted sessions of one log; at least one. What counts documents can be counted by document only.
        by: What a row is.
    """
    chunks = iter(chunks)
    first = next(chunks)
    return counted_of(frames_of(itertools.chain([first], chunks), by), by, first)


def frames_of(chunks: Iterable[ClickLog], by: CountedBy) -> Iterator[pl.DataFrame]:
    """The counts of each chunk, for `counted_of`."""
    return (added([_frame(chunk, by)]) for chunk in chunks)


def counted_of(frames: Iterable[pl.DataFrame], by: CountedBy, like: ClickLog) -> ClickLog:
    """The counted log of all frames, in whatever order they come.

    Args:
        frames: Counts of sessions, see `frames_of`; at least one.
        by: What a row is.
        like: A log with the candidates and the columns of the sessions.
    """
    merged = merged_frames(frames, added)
    rows = merged.sort(_keys(merged))
    return _log_of(rows, like) if by == "list" else log_of_documents(rows, like)


def subtract_sessions(counted: ClickLog, sessions: ClickLog) -> ClickLog:
    """A counted log without some of the sessions that it was made of.

    Args:
        counted: The counted log.
        sessions: The sessions to take out, over the same candidates.

    Raises:
        InputError: If they are not all in it, or if nothing else is.
    """
    by: CountedBy = "document" if counted.of_documents else "list"
    total, part = _frame(counted, by), added([_frame(sessions, by)])
    keys = _keys(total)
    if set(total.columns) != set(part.columns):
        raise InputError("expected a counted log with the columns and the length of lists of the sessions")
    joined = total.join(part, on=keys, how="left", suffix=" gone", maintain_order="left")
    gone = joined[f"{COUNT} gone"].fill_null(0)
    if gone.sum() != part[COUNT].sum() or (joined[COUNT] < gone).any():
        raise InputError("does not hold all of the sessions to subtract")
    left = joined.with_columns((joined[COUNT] - gone).alias(COUNT)).filter(pl.col(COUNT) > 0)
    if not len(left):
        raise InputError("no session would be left")
    left = left.select(total.columns)
    return _log_of(left, counted) if by == "list" else log_of_documents(left, counted)


def _frame(log: ClickLog, by: CountedBy) -> pl.DataFrame:
    """The rows with a column for each position, or a row for each shown document; without ids."""
    require_sessions(log, "counting")
    if by == "document":
        return documents_frame(log)
    require_lists(log, "counting by list")
    columns: dict[str, npt.NDArray[Any]] = {}
    for name, values in log.columns.items():
        if values.ndim == 2:
            columns |= {f"{name}.{position}": values[:, position] for position in range(log.k)}
        elif name == "timestamp":
            times = as_times(values)
            columns |= {} if times is None else {name: times.astype("datetime64[D]").astype("datetime64[us]")}
        elif name not in IDS:
            columns[name] = values
    return pl.DataFrame(columns)


def added(frames: list[pl.DataFrame]) -> pl.DataFrame:
    """The sums of the counts of equal rows."""
    rows = pl.concat(frames)
    return rows.group_by(_keys(rows)).agg(pl.col(COUNT).sum())


def _keys(rows: pl.DataFrame) -> list[str]:
    return [name for name in rows.columns if name != COUNT]


def _log_of(rows: pl.DataFrame, like: ClickLog) -> ClickLog:
    """The counted log, with the columns of another over the same candidates."""
    columns: dict[str, npt.NDArray[Any]] = {}
    for name, values in like.columns.items():
        if values.ndim == 2:
            by_position = rows.select(f"{name}.{position}" for position in range(like.k)).to_numpy()
            columns[name] = np.ascontiguousarray(by_position)
        elif name in rows.columns:
            columns[name] = text_array(rows[name]) if values.dtype.kind == "U" else rows[name].to_numpy()
    return ClickLog.from_columns(like.candidates, columns, aggregated=False, counted=True)
