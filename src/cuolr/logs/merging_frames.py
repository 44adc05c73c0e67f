"""Sums of tables that come in chunks, with memory for the result only."""

from collections.abc import Callable, Iterable

import polars as pl

from cuolr.logs.session_files import ROWS_AT_A_TIME


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
