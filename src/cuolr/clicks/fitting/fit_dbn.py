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

    def after_click(self, values: Values, documents: Ints) -> Doubles:
        """[M, K] γ·(1 − s)."""
        onward: Doubles = values["perseverance"][0] * super().after_click(values, documents)
        return onward

    def after_skip(self, values: Values) -> float:
        """γ."""
        return float(values["perseverance"][0])

    def count(self, values: Values, documents: Ints, passed: Passed) -> Iterator[Counted]:
        """P(satisfied | stopped after a click) = s / (1 − γ·(1 − s))."""
        unsatisfied = SimplifiedDynamicBayesianFit.after_click(self, values, documents)
        stopped = passed.clicked - passed.clicked_on
        satisfied = stopped * (1 - unsatisfied) / (1 - self.after_click(values, documents))
        hidden = satisfied * (passed.clicked - satisfied)
        yield Counted("satisfaction", np.maximum(documents, 0), satisfied, passed.clicked, hidden)
        undecided = passed.clicked - satisfied + passed.skipped
        yield Counted("perseverance", np.zeros_like(documents), passed.clicked_on + passed.skipped_on, undecided)

    def click_model(self, values: Values) -> ClickModel:
        """With the share of attractiveness that is satisfaction, see `share_satisfied`."""
        return DynamicBayesianModel(satisfaction=share_satisfied(values), perseverance=float(values["perseverance"][0]))
