"""Counting: sessions that are equal in all that learners use become one row with their number.

Counted by list, nothing but the ids and the time of day is lost, so what is learned from a counted log is what is
learned from the sessions. Counted by document, a row is a (query, document, position, last click above, context, day),
with and without a click: lists are lost, too. This suffices for models in which a click depends on the clicks above
through the last one only, and the number of rows is bounded by documents and positions, also if a stochastic logging
policy shows a new list in each session. Counts add up: those of 28 days are the counts of each day, merged.
"""

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from cuolr.data.text_sizes import text_array
from cuolr.errors import InputError
from cuolr.logs.clicklog import CONTEXT, ClickLog, require_lists, require_sessions
from cuolr.logs.columns import IDS, index_dtype
from cuolr.logs.counts import last_click_above
from cuolr.logs.log_folder import read_click_log, read_meta, write_click_log
from cuolr.logs.log_meta import COUNTED, described
from cuolr.logs.page_positions import at_page_positions
from cuolr.logs.session_files import merged_frames
from cuolr.logs.time_window import ALL_TIME, TimeWindow, as_times
from cuolr.progress import Stages, no_stages
from cuolr.types import Ints

# One number is the document, its position, the last click above it and its click: as a key it is several times as fast
# as four columns. The rest of 63 bits is the document.
POSITION_BITS, LAST_CLICK_BITS = 12, 13
CELL, COUNT = "cell", "count"
# Columns that belong to lists, and are not counted.
OF_LISTS = ("logging_propensity", "examination", "randomised")


def documents_frame(log: ClickLog) -> pl.DataFrame:
    """A row for each shown document of each row of a log: its cell, its reward, the context, the day and the count.

    Ids, propensities and what else belongs to a list are dropped.

    Args:
        log: Of sessions or counted, by list or by document.
    """
    day = None if log.timestamp is None else as_times(log.timestamp)
    labels: dict[str, npt.NDArray[Any]] = {f"{CONTEXT}{name}": values for name, values in log.context.items()}
    if day is not None:
        labels["timestamp"] = day.astype("datetime64[D]").astype("datetime64[us]")
    page = log if log.of_documents else at_page_positions(log)
    where = page.where

    def of_documents(by_row: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """[n] the value of the row of each document."""
        return np.broadcast_to(by_row[:, None], where.shape)[where]

    columns: dict[str, npt.NDArray[Any]] = {CELL: _cells(page)[where]}
    if page.reward is not None:
        columns["reward"] = page.reward[where]
    columns |= {name: of_documents(values) for name, values in labels.items()}
    return pl.DataFrame({**columns, COUNT: of_documents(page.count)})


def log_of_documents(rows: pl.DataFrame, like: ClickLog) -> ClickLog:
    """The counted log of these rows, as in `documents_frame`, over the candidates of another."""
    candidates = like.candidates
    document, position, last, clicks = _unpacked(rows[CELL].to_numpy())
    query = candidates.query_of_document[document]
    columns: dict[str, npt.NDArray[Any]] = {
        "query": query.astype(np.int32),
        "ranking": (document - candidates.offsets[query]).astype(index_dtype(candidates))[:, None],
        "clicks": clicks.astype(np.uint8)[:, None],
        COUNT: rows[COUNT].to_numpy(),
        "page_position": position.astype(np.int32)[:, None],
        "last_click": last.astype(np.int16),
    }
    for name in rows.columns:
        if name == "reward":
            columns[name] = rows[name].to_numpy()[:, None]
        elif name not in (CELL, COUNT):
            columns[name] = text_array(rows[name]) if rows[name].dtype == pl.String else rows[name].to_numpy()
    return ClickLog.from_columns(candidates, columns, aggregated=False, counted=True)


def _cells(page: ClickLog) -> Ints:
    """[M, K] the number of each document, position, last click above and click; any where nothing is shown."""
    if page.last_click is not None and page.page_position is not None:
        position, last = page.page_position.astype(np.int64), page.last_click.astype(np.int64)[:, None]
    else:
        if page.k >= 1 << POSITION_BITS:
            raise InputError(f"counting documents: expected fewer than {1 << POSITION_BITS} positions, found {page.k}")
        position, last = np.arange(page.k), last_click_above(page.clicks)
        last[np.arange(len(page)), np.argmax(page.where, axis=1)] = -1
    cells: Ints = page.candidates.offsets[page.query].astype(np.int64)[:, None] + page.ranking
    for bits, values in ((POSITION_BITS, position), (LAST_CLICK_BITS, last + 1), (1, page.clicks > 0)):
        cells <<= bits
        cells |= values
    return cells


def _unpacked(cells: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """The document, position, last click above and click of each number; the inverse of `_cells`."""
    rest, clicks = cells >> 1, cells & 1
    place, last = rest >> LAST_CLICK_BITS, (rest & ((1 << LAST_CLICK_BITS) - 1)) - 1
    return place >> POSITION_BITS, place & ((1 << POSITION_BITS) - 1), last, clicks


# What a row of a counted log is: a list with its clicks, or a document at a position.
CountedBy: TypeAlias = Literal["list", "document"]


def count_log(
    folder: Path,
    out: Path,
    window: TimeWindow = ALL_TIME,
    overwrite: bool = False,
    stages: Stages = no_stages,
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
