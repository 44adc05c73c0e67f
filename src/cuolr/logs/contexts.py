"""Levels of context: the combinations of the context columns that occur in a log, such as device and layout."""

import numpy as np
import polars as pl

from cuolr.errors import InputError
from cuolr.logs.clicklog import ClickLog
from cuolr.types import Ints

# Maximum number of levels: with more, each has little data, and a curve for each says little.
MAX_LEVELS = 20


def context_levels(log: ClickLog) -> tuple[tuple[str, ...], Ints]:
    """The levels of a log by name, sorted, and [M] the level of each row.

    A level of one column is called by its value, such as `mobile`; one of several columns as in
    `device=mobile,layout=grid`. A log without context has one level, called "".
    """
    if not log.context:
        return ("",), np.zeros(len(log), np.int64)
    names = sorted(log.context)
    texts = [pl.Series(name, log.context[name]).cast(pl.String) for name in names]
    if len(names) == 1:
        combined = texts[0]
    else:
        frame = pl.DataFrame(texts)
        parts = [part for name in names for part in (pl.lit(f"{name}="), pl.col(name), pl.lit(","))][:-1]
        combined = frame.select(pl.concat_str(parts).alias("level"))["level"]
    levels, level = np.unique(combined.to_numpy().astype(np.str_), return_inverse=True)
    if len(levels) > MAX_LEVELS:
        of_each = ", ".join(f"{name} has {text.n_unique():,}" for name, text in zip(names, texts, strict=True))
        raise InputError(
            f"context: expected at most {MAX_LEVELS} different values, together with all combinations, found "
            f"{len(levels):,} ({of_each}); leave out a column, or group its values"
        )
    return tuple(levels.tolist()), level.astype(np.int64)
