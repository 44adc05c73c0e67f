"""Click rates, the baselines of click models: one for all, by position, by document, by both."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cuolr.clicks.fitting.cell_fit import CellFit
from cuolr.clicks.fitting.click_model_fit import CLICK_FITS, ClickData, Expectation, Values, sums
from cuolr.logs.click_patterns import ClickPatterns
from cuolr.logs.last_clicks import PatternCells
from cuolr.types import Bools, Doubles, Ints


@dataclass(frozen=True)
class ClickRateFit(CellFit):
    """P(C_k = 1) = a rate of the document's and position's group; clicks do not depend on each other."""

    by_pair: ClassVar[tuple[str, ...]] = ()
    is_baseline: ClassVar[bool] = True

    @abstractmethod
    def rate_of(self, pair: Ints, position: Ints) -> Ints:
        """The entry of `rate` of each document (an index of pairs) at each position."""

    @property
    @abstractmethod
    def rates(self) -> int:
        """The number of entries of `rate`."""

    def start(self) -> dict[str, Doubles]:
        """All alike."""
        return {"rate": np.full(self.rates, 0.1)}

    def data(self, patterns: ClickPatterns) -> PatternCells:
        """Counts of (document, position)."""
        return patterns.cells.summed(position=True)

    def expect(self, values: Values, data: ClickData) -> Expectation:
        """Nothing is hidden."""
        assert isinstance(data, PatternCells)
        index = self.rate_of(data.pair, data.position)
        return Expectation(
            self.log_likelihood(values["rate"][index], data),
            {"rate": sums(index, data.clicks, self.rates)},
            {"rate": sums(index, data.impressions, self.rates)},
        )

    def conditional(self, values: Values, documents: Ints, clicks: Bools) -> Doubles:
        """[M, K] the rates."""
        return self.marginal(values, documents)

    def marginal(self, values: Values, documents: Ints) -> Doubles:
        """[M, K] the rates."""
        position = np.broadcast_to(np.arange(documents.shape[1]), documents.shape)
        rates: Doubles = values["rate"][self.rate_of(np.maximum(documents, 0), position)]
        return rates


@CLICK_FITS.register("ctr")
class GlobalClickRateFit(ClickRateFit):
    """One click rate for all documents and positions."""

    def rate_of(self, pair: Ints, position: Ints) -> Ints:
        """0."""
        return np.zeros_like(pair)

    @property
    def rates(self) -> int:
        """1."""
        return 1


@CLICK_FITS.register("ctr-position")
class PositionClickRateFit(ClickRateFit):
    """A click rate for each position."""

    def rate_of(self, pair: Ints, position: Ints) -> Ints:
        """The position."""
        return position

    @property
    def rates(self) -> int:
        """K."""
        return self.k


@CLICK_FITS.register("ctr-document")
class DocumentClickRateFit(ClickRateFit):
    """A click rate for each query–document pair, whatever its position."""

    by_pair = ("rate",)

    def rate_of(self, pair: Ints, position: Ints) -> Ints:
        """The pair."""
        return pair

    @property
    def rates(self) -> int:
        """P."""
        return self.pairs


@CLICK_FITS.register("ctr-document-position")
class DocumentPositionClickRateFit(ClickRateFit):
    """A click rate for each query–document pair at each position; each position has its own prior."""

    by_pair = ("rate",)

    def rate_of(self, pair: Ints, position: Ints) -> Ints:
        """Position·P + pair."""
        return position * self.pairs + pair

    @property
    def rates(self) -> int:
        """K · P."""
        return self.k * self.pairs

    def prior_groups(self) -> Ints:
        """The position."""
        return np.repeat(np.arange(self.k), self.pairs)
