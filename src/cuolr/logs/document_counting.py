"""Counts of (query, document, position, last click above, context, day), with and without a click.

They suffice for models in which a click depends on the clicks above through the last one only. Their number is bounded
by documents and positions: also if a stochastic logging policy shows a new list in each session.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from cuolr.errors import InputError
from cuolr.logs.clicklog import CONTEXT, ClickLog
from cuolr.logs.columns import index_dtype, text_array
from cuolr.logs.counts import last_click_above
from cuolr.logs.page_positions import at_page_positions
from cuolr.logs.time_window import as_times
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
