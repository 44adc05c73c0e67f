"""Counts of (document, position, last click above), to fit click models to."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np

from cuolr.logs.last_clicks import summed
from cuolr.types import Bools, Doubles, Ints


@dataclass(frozen=True)
class PatternCells:
    """Impressions and clicks of each (document, position, last click above), of n that occur.

    They suffice for click models in which a click depends on the clicks above through the last one only.

    Attributes:
        pair: [n] the number of the query–document pair.
        position: [n] from 0.
        last_click: [n] the position of the last click above, from 1; 0 = none.
        unit: [n] what is resampled, see `ClickPatterns.unit`.
        impressions: [n] number of sessions.
        clicks: [n] number of these sessions with a click on the document.
    """

    pair: Ints
    position: Ints
    last_click: Ints
    unit: Ints
    impressions: Doubles
    clicks: Doubles

    @classmethod
    def of_keys(cls, key: Ints, sums: Mapping[str, Doubles], sizes: tuple[int, int, int]) -> Self:
        """The cells of unit · sizes + (pair, position, last click), and their sums."""
        unit, place = np.divmod(key, int(np.prod(sizes)))
        pair, position, last = (index.astype(np.int64) for index in np.unravel_index(place, sizes))
        return cls(pair, position, last, unit, sums["impressions"], sums["clicks"])

    def weighted(self, weights: Doubles) -> Self:
        """The counts with each unit multiplied by its weight."""
        factor = weights[self.unit]
        return replace(self, impressions=self.impressions * factor, clicks=self.clicks * factor)

    def select(self, cells: Bools) -> Self:
        """These cells only."""
        return type(self)(*(getattr(self, column.name)[cells] for column in fields(self)))

    def summed(self, position: bool) -> Self:
        """The sums over the last click above, which is then 0, and over positions unless they are kept."""
        place = self.position if position else np.zeros_like(self.position)
        sizes = (int(self.pair.max(initial=0)) + 1, int(place.max(initial=0)) + 1)
        key, sums = summed(
            (self.unit * sizes[0] + self.pair) * sizes[1] + place, impressions=self.impressions, clicks=self.clicks
        )
        rest, place = np.divmod(key, sizes[1])
        unit, pair = np.divmod(rest, sizes[0])
        return type(self)(pair, place, np.zeros_like(place), unit, sums["impressions"], sums["clicks"])
