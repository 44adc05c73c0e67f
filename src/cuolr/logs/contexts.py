"""Levels of context: the combinations of the context columns that occur in a log, such as device and layout."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

from cuolr.errors import InputError
from cuolr.types import Doubles, Ints

# Maximum number of levels: with more, each has little data, and a curve for each says little.
MAX_LEVELS = 20


@dataclass(frozen=True)
class ContextCurves:
    """Examination by level of context.

    Attributes:
        levels: The names of the levels.
        tables: [levels, K, K + 1] examination by position and last click above, relative to the level's position 1;
            NaN where not observed in the log.
        scale: [levels] clicks at position 1 in the level, relative to all sessions, for the same documents.
    """

    levels: tuple[str, ...]
    tables: Doubles
    scale: Doubles

    def relative(self, levels: Sequence[str], otherwise: Doubles) -> Doubles:
        """[number of levels, K, K + 1] scale · table of these levels; `otherwise` for those that are unknown."""
        known = dict(zip(self.levels, self.scale[:, None, None] * self.tables, strict=True))
        return np.stack([known.get(level, otherwise) for level in levels])


class RowsWithContext(Protocol):
    """The rows of a log, or of its counts."""

    @property
    def context(self) -> Mapping[str, npt.NDArray[Any]]:
        """[M] each."""

    def __len__(self) -> int:
        """M."""


def context_levels(log: RowsWithContext) -> tuple[tuple[str, ...], Ints]:
    """The levels of a log by name, sorted, and [M] the level of each row.

    A level of one column is called by its value, such as `mobile`; one of several columns as in
    `device=mobile,layout=grid`. A log without context has one level, called "".
    """
    if not log.context:
        return ("",), np.zeros(len(log), np.int64)
    names = sorted(log.context)
    frame = pl.DataFrame({name: pl.Series(log.context[name]).cast(pl.String) for name in names})
    parts = [part for name in names for part in (pl.lit(f"{name}="), pl.col(name), pl.lit(","))][:-1]
    combined = frame.to_series() if len(names) == 1 else frame.select(level=pl.concat_str(parts)).to_series()
    levels = combined.unique().sort().to_list()
    if len(levels) > MAX_LEVELS:
        of_each = ", ".join(f"{name} has {frame[name].n_unique():,}" for name in names)
        raise InputError(
            f"context: expected at most {MAX_LEVELS} different values, together with all combinations, found "
            f"{len(levels):,} ({of_each}); leave out a column, or group its values"
        )
    return tuple(levels), combined.cast(pl.Enum(levels)).to_physical().to_numpy().astype(np.int64)
