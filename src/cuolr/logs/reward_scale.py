"""Rewards on the scale of clicks, so that settings of learners mean the same for clicks, purchases and revenue."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from cuolr.errors import InputError
from cuolr.logs.clicklog import ClickLog
from cuolr.types import Ints

# Number of rows read at a time, so that memory does not grow with the log.
ROWS_AT_A_TIME = 1 << 18
NONE: Ints = np.empty(0, np.int64)


def on_click_scale(log: ClickLog, held_out: Ints) -> tuple[ClickLog, float]:
    """The log with rewards in units of the mean reward of a click, and that unit.

    Their sum is then the number of clicks. A reward that is the same for each click becomes the click itself.

    Args:
        log: Raw or aggregated. Without rewards it is returned as it is, and the unit is 1.
        held_out: Queries whose rewards must not affect the unit.
    """
    if log.reward is None:
        return log, 1.0
    if (log.reward < 0).any() or (log.reward[log.clicks == 0] > 0).any():
        raise InputError("log: expected rewards from 0 up, and above 0 only where there is a click")
    clicks, reward, _ = _moments(log, np.isin(log.query, held_out, invert=True))
    unit = reward / clicks if reward > 0 else 1.0
    return replace(log, reward=log.reward / unit), unit


def information(log: ClickLog, held_out: Ints = NONE) -> float:
    """(Σ r)² / (Σ c · Σ r²), between 0 and 1: how many clicks with a constant reward say as much as one click here.

    It is the inverse of the dispersion of rewards relative to a Poisson count. 1 if each click has the same reward; the
    share of clicks with a purchase if purchases are rewarded alone. In an aggregated log, the rewards of single
    clicks are unknown, and it is overestimated.

    Args:
        log: Raw or aggregated.
        held_out: Queries whose rewards must not count.
    """
    if log.reward is None:
        return 1.0
    clicks, reward, squares = _moments(log, np.isin(log.query, held_out, invert=True))
    return min(reward**2 / (clicks * squares), 1.0) if reward > 0 and clicks > 0 else 1.0


def weights_of(meta: Mapping[str, Any]) -> dict[str, float] | None:
    """The weight of each column of the imported table in the reward, by the description of a log; None = unknown."""
    match meta:
        case {"source": {"reward": dict(weights)}}:
            return weights
        case _:
            return None


def _moments(log: ClickLog, rows: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> tuple[float, float, float]:
    """The sums of the clicks, the rewards and their squares over these rows."""
    assert log.reward is not None
    totals = np.zeros(3)
    chosen = np.flatnonzero(rows)
    for start in range(0, len(chosen), ROWS_AT_A_TIME):
        part = chosen[start : start + ROWS_AT_A_TIME]
        reward = log.reward[part].astype(np.float64)
        sums = [values.sum(axis=1) @ log.count[part] for values in (log.clicks[part], reward, reward**2)]
        totals += np.array(sums, np.float64)
    clicks, rewards, squares = totals.tolist()
    return clicks, rewards, squares
