"""Click models in which a click depends on the clicks above through the last one only: cascade, PBM, UBM."""

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from cuolr.clicks.cascade import CascadeModel
from cuolr.clicks.click_model import ClickModel
from cuolr.clicks.fitting.click_model_fit import (
    CLICK_FITS,
    ClickData,
    ClickModelFit,
    Expectation,
    Values,
    of_pairs,
    sums,
)
from cuolr.clicks.pbm import PositionBasedModel
from cuolr.clicks.ubm import UserBrowsingModel
from cuolr.logs.click_patterns import ClickPatterns
from cuolr.logs.counts import last_click_above
from cuolr.logs.last_clicks import PatternCells
from cuolr.policies.forward_clicks import forward_clicks
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


@CLICK_FITS.register("cascade")
class CascadeFit(CellFit):
    """P(C_k = 1 | no click above) = α(d), and no click after the first; Craswell et al. 2008.

    A session of several clicks has probability 0. Fitting counts the positions down to the first click.
    """

    def start(self) -> dict[str, Doubles]:
        """All alike."""
        return {"attractiveness": np.full(self.pairs, 0.3)}

    def data(self, patterns: ClickPatterns) -> PatternCells:
        """Counts by document down to the first click; with those below it no likelihood would be finite."""
        return patterns.cells.select(patterns.cells.last_click == 0).summed(position=False)

    def expect(self, values: Values, data: ClickData) -> Expectation:
        """Nothing is hidden."""
        assert isinstance(data, PatternCells)
        return Expectation(
            self.log_likelihood(values["attractiveness"][data.pair], data),
            {"attractiveness": sums(data.pair, data.clicks, self.pairs)},
            {"attractiveness": sums(data.pair, data.impressions, self.pairs)},
        )

    def conditional(self, values: Values, documents: Ints, clicks: Bools) -> Doubles:
        """[M, K] α(d) down to the first click, then 0."""
        return np.where(last_click_above(clicks) == 0, of_pairs(values["attractiveness"], documents), 0.0)

    def marginal(self, values: Values, documents: Ints) -> Doubles:
        """[M, K] α(d_k) · Π_{i<k} (1 − α(d_i))."""
        attractiveness = of_pairs(values["attractiveness"], documents)
        reached = np.ones(documents.shape)
        np.cumprod(1 - attractiveness[:, :-1], axis=1, out=reached[:, 1:])
        return attractiveness * reached

    def click_model(self, values: Values) -> ClickModel:
        """It has no global parameters."""
        return CascadeModel()


@CLICK_FITS.register("pbm")
class PositionBasedFit(ExaminationFit):
    """P(C_k = 1) = θ_k · α(d); Craswell et al. 2008, Chuklin et al. 2015, section 3.4."""

    def data(self, patterns: ClickPatterns) -> PatternCells:
        """Counts of (document, position)."""
        return patterns.cells.summed(position=True)

    def cell_of(self, position: Ints, last_click: Ints) -> Ints:
        """The position."""
        return position

    @property
    def cells(self) -> int:
        """K."""
        return self.k

    def marginal(self, values: Values, documents: Ints) -> Doubles:
        """[M, K] θ_k · α(d)."""
        return self.conditional(values, documents, np.zeros(documents.shape, np.bool_))

    def click_model(self, values: Values) -> ClickModel:
        """With the examination of each position."""
        return PositionBasedModel(examination=tuple(values["examination"].tolist()))


@CLICK_FITS.register("ubm")
class UserBrowsingFit(ExaminationFit):
    """P(C_k = 1 | last click above at j) = γ_{k,j} · α(d); Dupret and Piwowarski 2008.

    Entry k·(K + 1) + j of `examination` is for position k, from 0, and last click j, from 1; j = 0 means none.
    """

    def cell_of(self, position: Ints, last_click: Ints) -> Ints:
        """k·(K + 1) + j."""
        return position * (self.k + 1) + last_click

    @property
    def cells(self) -> int:
        """K · (K + 1)."""
        return self.k * (self.k + 1)

    def marginal(self, values: Values, documents: Ints) -> Doubles:
        """By dynamic programming over the last click."""
        attractiveness = of_pairs(values["attractiveness"], documents)
        return forward_clicks(attractiveness, documents >= 0, self.table(values))

    def table(self, values: Values) -> Doubles:
        """[K, K + 1] γ by position and last click."""
        return values["examination"].reshape(self.k, self.k + 1)

    def entry_name(self, name: str, place: int) -> str:
        """The position and the last click above it."""
        position, last = divmod(place, self.k + 1)
        return f"position {position + 1}, {f'last click at {last}' if last else 'no click above'}"

    def click_model(self, values: Values) -> ClickModel:
        """Row r has the entries for rank r by the distance to the last click; the last one is for none."""
        table = self.table(values)
        rows = [tuple(table[k, [*range(k, 0, -1), 0]].tolist()) for k in range(len(table))]
        if len(rows) == 1:
            rows.append((rows[0][0], rows[0][0]))
        return UserBrowsingModel(examination=tuple(rows))
