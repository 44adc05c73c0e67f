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
    row, position, last = _places(log)
    page = log if log.of_documents else at_page_positions(log)
    at = (row, 0 if log.of_documents else position)
    document = page.candidates.offsets[page.query[row]] + page.ranking[at]
    columns: dict[str, npt.NDArray[Any]] = {CELL: _packed(document, position, last, page.clicks[at])}
    if page.reward is not None:
        columns["reward"] = page.reward[at]
    columns |= {name: values[row] for name, values in labels.items()}
    return pl.DataFrame({**columns, COUNT: page.count[row]})


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


def _places(log: ClickLog) -> tuple[Ints, Ints, Ints]:
    """[n] each, of the shown documents: the row, the position on the page from 0, and the last click above."""
    if log.last_click is not None and log.page_position is not None:
        return np.arange(len(log)), log.page_position[:, 0].astype(np.int64), log.last_click.astype(np.int64)
    page = at_page_positions(log)
    where = page.where
    if page.k >= 1 << POSITION_BITS:
        raise InputError(f"counting documents: expected fewer than {1 << POSITION_BITS} positions, found {page.k}")
    row, position = np.nonzero(where)
    last = last_click_above(page.clicks)[row, position]
    last[position == np.argmax(where, axis=1)[row]] = -1
    return row, position, last


def _packed(document: Ints, position: Ints, last: Ints, clicks: npt.NDArray[Any]) -> Ints:
    place = (document.astype(np.int64) << POSITION_BITS) | position
    cells: Ints = (((place << LAST_CLICK_BITS) | (last + 1)) << 1) | (clicks > 0)
    return cells


def _unpacked(cells: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """The inverse of `_packed`."""
    rest, clicks = cells >> 1, cells & 1
    place, last = rest >> LAST_CLICK_BITS, (rest & ((1 << LAST_CLICK_BITS) - 1)) - 1
    return place >> POSITION_BITS, place & ((1 << POSITION_BITS) - 1), last, clicks
