"""The simplified dynamic Bayesian network model, fitted to a log."""

from collections.abc import Iterator

import numpy as np

from cuolr.clicks.click_model import ClickModel
from cuolr.clicks.fitting.click_model_fit import CLICK_FITS, Values
from cuolr.clicks.fitting.top_down_fit import Counted, Passed, TopDownFit
from cuolr.clicks.sdbn import SimplifiedDynamicBayesianModel
from cuolr.types import Doubles, Ints


@CLICK_FITS.register("sdbn")
class SimplifiedDynamicBayesianFit(TopDownFit):
    """A click on document d satisfies with probability s(d), and only satisfied users stop; Chapelle and Zhang 2009."""

    by_pair = ("attractiveness", "satisfaction")

    def start(self) -> dict[str, Doubles]:
        """All alike."""
        return {"attractiveness": np.full(self.pairs, 0.3), "satisfaction": np.full(self.pairs, 0.5)}

    def after_click(self, values: Values, pair: Ints, position: Ints) -> Doubles:
        """1 − s."""
        return 1 - values["satisfaction"][pair]

    def count(self, values: Values, passed: Passed) -> Iterator[Counted]:
        """Who stops is satisfied."""
        satisfied = 1 - passed.onward
        hidden = passed.clicked * satisfied * passed.onward
        yield Counted("satisfaction", passed.pair, passed.clicked * satisfied, passed.clicked, hidden)

    def click_model(self, values: Values) -> ClickModel:
        """With the share of attractiveness that is satisfaction, see `share_satisfied`."""
        return SimplifiedDynamicBayesianModel(satisfaction=share_satisfied(values))


def share_satisfied(values: Values) -> float:
    """σ of s = σ · relevance, as labelled documents are simulated: s regressed on the attractiveness, through 0."""
    attractiveness = values["attractiveness"]
    squares = float(attractiveness @ attractiveness)
    return min(1.0, float(values["satisfaction"] @ attractiveness) / squares) if squares > 0 else 0.0
