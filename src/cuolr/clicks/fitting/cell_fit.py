"""Bases of click models in which a click depends on the clicks above through the last one only."""

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from cuolr.clicks.fitting.click_model_fit import (
    ClickData,
    ClickModelFit,
    Expectation,
    Values,
    of_pairs,
    sums,
)
from cuolr.logs.click_patterns import ClickPatterns
from cuolr.logs.counts import last_click_above
from cuolr.logs.pattern_cells import PatternCells
from cuolr.types import Bools, Doubles, Ints


class CellFit(ClickModelFit):
    """Fitted on counts of (document, position, last click above), of which there are fewer than click patterns."""

    needs_lists: ClassVar[bool] = False

    def data(self, patterns: ClickPatterns) -> PatternCells:
        """Counts of (document, position, last click above); less, if less suffices."""
        return patterns.cells

    @staticmethod
    def log_likelihood(chance: Doubles, cells: PatternCells) -> float:
        """Σ clicks · log P + skips · log (1 − P)."""
        return float(cells.clicks @ np.log(chance) + (cells.impressions - cells.clicks) @ np.log1p(-chance))


class ExaminationFit(CellFit):
    """P(C_k = 1 | last click j) = χ(k, j) · α(d), with a table χ that is one of the parameters.

    Only the products are identified: χ·c and α/c give the same clicks. The scale is chosen so that the largest χ is 1.

    Deviation: in the E-step only examination is hidden, so the trials of α are expected examinations and its successes
    clicks. The textbook version (Chuklin et al. 2015, section 4.2) hides attraction, too. Both increase the same
    likelihood; ours hides less and converges faster.
    """

    @abstractmethod
    def cell_of(self, position: Ints, last_click: Ints) -> Ints:
        """The entry of `examination` for each position (from 0) and last click above (from 1; 0 = none)."""

    @property
    @abstractmethod
    def cells(self) -> int:
        """The number of entries of `examination`."""

    def start(self) -> dict[str, Doubles]:
        """All alike."""
        return {"attractiveness": np.full(self.pairs, 0.3), "examination": np.full(self.cells, 0.5)}

    def expect(self, values: Values, data: ClickData) -> Expectation:
        """P(E = 1 | C = 0) = χ·(1 − α) / (1 − χ·α)."""
        assert isinstance(data, PatternCells)
        cell = self.cell_of(data.position, data.last_click)
        examination, attraction = values["examination"][cell], values["attractiveness"][data.pair]
        chance = examination * attraction
        if_skip, skips = (examination - chance) / (1 - chance), data.impressions - data.clicks
        examined = data.clicks + skips * if_skip
        hidden = skips * attraction**2 * if_skip * (1 - if_skip)
        return Expectation(
            self.log_likelihood(chance, data),
            {
                "attractiveness": sums(data.pair, data.clicks, self.pairs),
                "examination": sums(cell, examined, self.cells),
            },
            {
                "attractiveness": sums(data.pair, examined, self.pairs),
                "examination": sums(cell, data.impressions, self.cells),
            },
            {"attractiveness": sums(data.pair, hidden, self.pairs)},
        )

    def conditional(self, values: Values, documents: Ints, clicks: Bools) -> Doubles:
        """[M, K] χ(k, j) · α(d)."""
        position = np.broadcast_to(np.arange(documents.shape[1]), documents.shape)
        cell = self.cell_of(position, last_click_above(clicks))
        chance: Doubles = values["examination"][cell] * of_pairs(values["attractiveness"], documents)
        return chance

    def centred(self, values: Values) -> dict[str, Doubles]:
        """With the same maximum of χ and α."""
        return self._rescaled(values, float(np.sqrt(values["attractiveness"].max() / values["examination"].max())))

    def normalised(self, values: Values) -> dict[str, Doubles]:
        """With 1 as the largest χ."""
        return self._rescaled(values, 1 / float(values["examination"].max()))

    @staticmethod
    def _rescaled(values: Values, factor: float) -> dict[str, Doubles]:
        examination, attractiveness = values["examination"] * factor, values["attractiveness"] / factor
        return {**values, "examination": examination, "attractiveness": attractiveness}
