"""Aggregation: sessions that were shown the same list become one row, so training costs by list, not by session.

Rewards enter the temporal-difference target linearly, and weighted clicks enter the list-wise losses linearly. So the
mean over the sessions of a row, weighted by their number, gives the same gradient as the sessions.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from cuolr.errors import InputError
from cuolr.logs.clicklog import CONTEXT, ClickLog, require_lists, require_sessions
from cuolr.logs.log_folder import read_click_log
from cuolr.logs.session_files import ROWS_AT_A_TIME, merged_frames
from cuolr.logs.time_window import ALL_TIME, TimeWindow
from cuolr.progress import Progress, Stages, no_progress, no_stages
from cuolr.types import Doubles

# Columns that distinguish lists, by the first part of their name.
KEYS = ("query", "ranking", "logging_propensity", "page_position", "randomised", "context")

# Weights [m, K] for the clicks [m, K] of m sessions.
Weighting: TypeAlias = Callable[[npt.NDArray[Any]], npt.NDArray[np.floating[Any]]]


def aggregate(log: ClickLog, click_weights: Weighting | None = None, progress: Progress = no_progress) -> ClickLog:
    """One row for each query and ranking, with the number of its sessions and their mean clicks and rewards.

    Sessions of one list that differ in logging propensities (the logging policy changed), page positions, context or
    in whether their order was random are not merged. Timestamps and ids are dropped.

    Args:
        log: Raw or aggregated.
        click_weights: Each click and its reward are multiplied by its weight before averaging, for weights that depend
            on the other clicks of the session.
        progress: Called with the number of rows of each chunk.

    Returns:
        Rows sorted by query and ranking, whatever the order of the sessions.
    """
    slices = (slice(start, start + ROWS_AT_A_TIME) for start in range(0, max(len(log), 1), ROWS_AT_A_TIME))
    return aggregate_chunks((log.select(rows) for rows in slices), click_weights, progress)


def aggregate_folder(folder: Path, window: TimeWindow = ALL_TIME, stages: Stages = no_stages) -> ClickLog:
    """Aggregate a saved log as `aggregate` does, in chunks, for logs that are larger than memory.

    Memory grows with the number of distinct lists only: about 1 kB each at the peak, for lists of ten.

    Args:
        folder: Folder of the log.
        window: The sessions to read.
        stages: Receives the rows that were read so far.
    """
    return aggregate_chunks(read_click_log(folder, window=window, ids=False, stages=stages))


def aggregate_chunks(
    chunks: Iterable[ClickLog], weighting: Weighting | None = None, progress: Progress = no_progress
) -> ClickLog:
    """Aggregate a log that is given in chunks; see `aggregate`."""
    last: ClickLog | None = None

    def sums() -> Iterator[pl.DataFrame]:
        nonlocal last
        for last in chunks:
            yield _sums_by_list(last, weighting)
            progress(len(last))

    merged = merged_frames(sums(), _merge)
    assert last is not None
    return _means(merged, last)


def subtract(lists: ClickLog, sessions: ClickLog) -> ClickLog:
    """An aggregated log without some of the sessions that it was made of.

    Args:
        lists: Aggregated, without weights on its clicks.
        sessions: The sessions to take out, over the same candidates.

    Raises:
        InputError: If they are not all in it, or if nothing else is.
    """
    total, part = _sums_by_list(lists, None), _sums_by_list(sessions, None)
    keys, gone = _keys(total), " gone"
    if set(total.columns) != set(part.columns):
        raise InputError("expected an aggregated log with the columns and the length of lists of the sessions")
    joined = total.join(part, on=keys, how="left", suffix=gone, maintain_order="left")
    found = joined["count" + gone].fill_null(0)
    if found.sum() != part["count"].sum() or (joined["count"] < found).any():
        raise InputError("does not hold all of the sessions to subtract")
    left = joined.select(
        *keys, *(pl.col(name) - pl.col(name + gone).fill_null(0) for name in total.columns if name not in keys)
    ).filter(pl.col("count") > 0)
    if not len(left):
        raise InputError("no session would be left")
    # Sums of 0 and 1 are whole numbers, which means times counts are not exactly.
    whole = [name for name in left.columns if name.partition(".")[0] in ("clicks", "examination")]
    return _means(left.with_columns(pl.col(whole).round()), lists)


def _sums_by_list(log: ClickLog, weighting: Weighting | None) -> pl.DataFrame:
    """A row for each list: its key (see `KEYS`), the number of its sessions, and sums over them by position."""
    require_lists(log, "aggregating")
    count = log.count[:, None].astype(np.float64)
    weight: Doubles | npt.NDArray[np.floating[Any]] = count
    if weighting is not None:
        require_sessions(log, "weighting clicks")
        weight = count * weighting(log.clicks)
    columns = {"query": log.query, "count": log.count}
    columns |= _by_position("ranking", log.ranking) | _by_position("clicks", log.clicks * weight)
    if log.logging_propensity is not None:
        columns |= _by_position("logging_propensity", log.logging_propensity)
    if log.page_position is not None:
        columns |= _by_position("page_position", log.page_position)
    if log.examination is not None:
        columns |= _by_position("examination", log.examination * count)
    if log.reward is not None:
        columns |= _by_position("reward", log.reward * weight)
    if log.randomised is not None:
        columns["randomised"] = log.randomised
    columns |= {f"{CONTEXT}{name}": values for name, values in log.context.items()}
    return _merge([pl.DataFrame(columns)])


def _merge(sums: list[pl.DataFrame]) -> pl.DataFrame:
    """Add up the rows of each list."""
    rows = pl.concat(sums)
    return rows.group_by(_keys(rows), maintain_order=True).agg(pl.all().sum())


def _keys(rows: pl.DataFrame) -> list[str]:
    return [name for name in rows.columns if name.partition(".")[0] in KEYS]


def _means(sums: pl.DataFrame, log: ClickLog) -> ClickLog:
    """The aggregated log; `log` is one of its chunks."""
    sums = sums.sort(_keys(sums))
    count = sums["count"].to_numpy()

    def column(name: str) -> npt.NDArray[Any]:
        values: npt.NDArray[Any] = sums.select(f"{name}.{position}" for position in range(log.k)).to_numpy()
        return np.ascontiguousarray(values)

    def of_context(name: str, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        distinct = sums[f"{CONTEXT}{name}"].to_numpy()
        return distinct.astype(np.str_) if values.dtype.kind == "U" else distinct

    return ClickLog(
        candidates=log.candidates,
        query=sums["query"].to_numpy(),
        ranking=column("ranking"),
        clicks=column("clicks") / count[:, None],
        count=count,
        logging_propensity=None if log.logging_propensity is None else column("logging_propensity"),
        examination=None if log.examination is None else column("examination") / count[:, None],
        reward=None if log.reward is None else column("reward") / count[:, None],
        page_position=None if log.page_position is None else column("page_position"),
        randomised=None if log.randomised is None else sums["randomised"].to_numpy(),
        context={name: of_context(name, values) for name, values in log.context.items()},
        aggregated=True,
    )


def _by_position(name: str, values: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
    return {f"{name}.{position}": values[:, position] for position in range(values.shape[1])}
