"""The click chain model, fitted to a log."""

from collections.abc import Iterator

import numpy as np

from cuolr.clicks.ccm import ClickChainModel
from cuolr.clicks.click_model import ClickModel
from cuolr.clicks.fitting.click_model_fit import CLICK_FITS, Values, of_pairs
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

    def after_click(self, values: Values, documents: Ints) -> Doubles:
        """[M, K] α₂·(1 − a) + α₃·a."""
        _, irrelevant, relevant = values["continuation"]
        onward: Doubles = irrelevant + (relevant - irrelevant) * of_pairs(values["attractiveness"], documents)
        return onward

    def after_skip(self, values: Values) -> float:
        """α₁."""
        return float(values["continuation"][SKIP])

    def count(self, values: Values, documents: Ints, passed: Passed) -> Iterator[Counted]:
        """By whether the clicked document was relevant, given whether the user continued."""
        attractiveness = of_pairs(values["attractiveness"], documents)
        relevant = values["continuation"][RELEVANT]
        on, off = passed.clicked_on, passed.clicked - passed.clicked_on
        relevant_on = on * attractiveness * relevant / self.after_click(values, documents)
        relevant_off = off * attractiveness * (1 - relevant) / (1 - self.after_click(values, documents))
        both = relevant_on + relevant_off
        pair, first = np.maximum(documents, 0), np.zeros_like(documents)
        yield Counted("attractiveness", pair, both, passed.clicked, both * (passed.clicked - both))
        yield Counted("continuation", first + SKIP, passed.skipped_on, passed.skipped)
        yield Counted("continuation", first + IRRELEVANT, on - relevant_on, passed.clicked - both)
        yield Counted("continuation", first + RELEVANT, relevant_on, both)

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
