"""The click chain model, fitted to a log."""

from collections.abc import Iterator

import numpy as np

from cuolr.clicks.ccm import ClickChainModel
from cuolr.clicks.click_model import ClickModel
from cuolr.clicks.fitting.click_model_fit import CLICK_FITS, Values
from cuolr.clicks.fitting.top_down_fit import Counted, Passed, TopDownFit
from cuolr.types import Doubles, Ints

# The three probabilities to continue: after a skip, after a click on an irrelevant and on a relevant document.
SKIP, IRRELEVANT, RELEVANT = range(3)


@CLICK_FITS.register("ccm")
class ClickChainFit(TopDownFit):
    """The user continues with α₁ after a skip, with α₂·(1 − a) + α₃·a after a click; Guo et al. 2009.

    a is the attractiveness, as in the original model. After a click it is hidden whether the document was relevant,
    with probability a: then the user continues with α₃, otherwise with α₂. `continuation` is (α₁, α₂, α₃).
    """

    def start(self) -> dict[str, Doubles]:
        """Users stop more often after a relevant document."""
        return {"attractiveness": np.full(self.pairs, 0.3), "continuation": np.array([0.9, 0.7, 0.4])}

    def after_click(self, values: Values, pair: Ints, position: Ints) -> Doubles:
        """α₂·(1 − a) + α₃·a."""
        _, irrelevant, relevant = values["continuation"]
        onward: Doubles = irrelevant + (relevant - irrelevant) * values["attractiveness"][pair]
        return onward

    def after_skip(self, values: Values) -> float:
        """α₁."""
        return float(values["continuation"][SKIP])

    def count(self, values: Values, passed: Passed) -> Iterator[Counted]:
        """By whether the clicked document was relevant, given whether the user continued."""
        clicked, on = passed.clicked, passed.onward
        attractiveness, relevant = values["attractiveness"][passed.pair], values["continuation"][RELEVANT]
        onward = self.after_click(values, passed.pair, passed.position)
        relevant_on = on * attractiveness * relevant / onward
        relevant_off = (1 - on) * attractiveness * (1 - relevant) / (1 - onward)
        both = relevant_on + relevant_off
        yield Counted("attractiveness", passed.pair, clicked * both, clicked, clicked * both * (1 - both))
        successes = (passed.skipped_on, float(clicked @ (on - relevant_on)), float(clicked @ relevant_on))
        trials = (passed.skipped, float(clicked @ (1 - both)), float(clicked @ both))
        yield Counted("continuation", np.array([SKIP, IRRELEVANT, RELEVANT]), np.array(successes), np.array(trials))

    def entry_name(self, name: str, place: int) -> str:
        """After what the user continues."""
        return ("after a skip", "after a click, irrelevant", "after a click, relevant")[place]

    def click_model(self, values: Values) -> ClickModel:
        """With the attractiveness as relevance."""
        skip, irrelevant, relevant = values["continuation"].tolist()
        return ClickChainModel(
            continuation_after_skip=skip,
            continuation_after_irrelevant=irrelevant,
            continuation_after_relevant=relevant,
            relevance_is_attractiveness=True,
        )
