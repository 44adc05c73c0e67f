"""The cascade model, fitted to a log."""

import numpy as np

from cuolr.clicks.cascade import CascadeModel
from cuolr.clicks.click_model import ClickModel
from cuolr.clicks.fitting.cell_fit import CellFit
from cuolr.clicks.fitting.click_model_fit import CLICK_FITS, ClickData, Expectation, Values, of_pairs, sums
from cuolr.logs.click_patterns import ClickPatterns
from cuolr.logs.counts import last_click_above
from cuolr.logs.pattern_cells import PatternCells
from cuolr.types import Bools, Doubles, Ints


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
