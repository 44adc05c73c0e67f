"""The dynamic Bayesian network model, fitted to a log."""

from collections.abc import Iterator

import numpy as np

from cuolr.clicks.click_model import ClickModel
from cuolr.clicks.dbn import DynamicBayesianModel
from cuolr.clicks.fitting.click_model_fit import CLICK_FITS, Values
from cuolr.clicks.fitting.fit_sdbn import SimplifiedDynamicBayesianFit, share_satisfied
from cuolr.clicks.fitting.top_down_fit import Counted, Passed
from cuolr.types import Doubles, Ints


@CLICK_FITS.register("dbn")
class DynamicBayesianFit(SimplifiedDynamicBayesianFit):
    """As SDBN, but an unsatisfied user continues with probability γ, the perseverance; Chapelle and Zhang 2009."""

    def start(self) -> dict[str, Doubles]:
        """All alike."""
        return {**super().start(), "perseverance": np.array([0.9])}

    def after_click(self, values: Values, pair: Ints, position: Ints) -> Doubles:
        """γ·(1 − s)."""
        onward: Doubles = values["perseverance"][0] * super().after_click(values, pair, position)
        return onward

    def after_skip(self, values: Values) -> float:
        """γ."""
        return float(values["perseverance"][0])

    def count(self, values: Values, passed: Passed) -> Iterator[Counted]:
        """P(satisfied | stopped after a click) = s / (1 − γ·(1 − s))."""
        onward = self.after_click(values, passed.pair, passed.position)
        satisfied = (1 - passed.onward) * values["satisfaction"][passed.pair] / (1 - onward)
        hidden = passed.clicked * satisfied * (1 - satisfied)
        yield Counted("satisfaction", passed.pair, passed.clicked * satisfied, passed.clicked, hidden)
        persevered = float(passed.clicked @ passed.onward) + passed.skipped_on
        undecided = float(passed.clicked @ (1 - satisfied)) + passed.skipped
        yield Counted("perseverance", np.array([0]), np.array([persevered]), np.array([undecided]))

    def click_model(self, values: Values) -> ClickModel:
        """With the share of attractiveness that is satisfaction, see `share_satisfied`."""
        return DynamicBayesianModel(satisfaction=share_satisfied(values), perseverance=float(values["perseverance"][0]))
