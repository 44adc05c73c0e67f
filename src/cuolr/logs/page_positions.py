"""Lists as they stood on the page: with gaps where ads or removed documents were, or on a later page."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cuolr.logs.clicklog import ClickLog
from cuolr.types import Ints

# Positions on the page that examination tells apart. Further down only the order of the documents is kept.
DISTINCT_POSITIONS = 30
# What stands where nothing is shown, by column.
NOTHING = {"ranking": -1, "logging_propensity": 1.0}


def at_page_positions(log: ClickLog, width: int | None = None) -> ClickLog:
    """The log with each document in the column of its position on the page, −1 in the gaps.

    For whatever depends on the position that the user saw: examination, propensities, position bias. A log without
    `page_position` is returned as it is.

    Args:
        log: Raw or aggregated.
        width: Number of columns; None = up to the last that is filled.
    """
    if log.page_position is None:
        return log
    column = _columns(log)
    row, index = np.nonzero(log.where)
    width = page_width(log) if width is None else width

    def spread(name: str, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        wide = np.full((len(log), width), NOTHING.get(name, 0), values.dtype)
        wide[row, column[row, index]] = values[row, index]
        return wide

    by_position = {name: spread(name, values) for name, values in log.columns.items() if values.ndim == 2}
    del by_position["page_position"]
    columns: dict[str, Any] = dict(by_position)
    return replace(log, page_position=None, **columns)


def page_width(log: ClickLog) -> int:
    """The number of columns of `at_page_positions`."""
    return log.k if log.page_position is None else int(_columns(log).max(initial=0)) + 1


def widest_page(log: ClickLog) -> int:
    """The number of columns that no chunk of the same log exceeds."""
    return log.k if log.page_position is None else DISTINCT_POSITIONS + log.k


def _columns(log: ClickLog) -> Ints:
    """[M, K] the column of each document; −1 where nothing was shown."""
    assert log.page_position is not None
    if log.of_documents:  # counted by column
        return log.page_position.astype(np.int64)
    far = log.where & (log.page_position >= DISTINCT_POSITIONS)
    columns = np.where(far, DISTINCT_POSITIONS + np.cumsum(far, axis=1) - 1, log.page_position)
    return columns.astype(np.int64)
