"""Click models whose users examine from the top until they stop, fitted to a log: DCM, CCM, SDBN, DBN."""

from collections.abc import Iterator

import numpy as np

from cuolr.clicks.ccm import ClickChainModel
from cuolr.clicks.click_model import ClickModel
from cuolr.clicks.dbn import DynamicBayesianModel
from cuolr.clicks.dcm import DependentClickModel
from cuolr.clicks.fitting.click_model_fit import CLICK_FITS, Values
from cuolr.clicks.fitting.top_down_fit import Counted, Passed, TopDownFit
from cuolr.clicks.sdbn import SimplifiedDynamicBayesianModel
from cuolr.types import Doubles, Ints


@CLICK_FITS.register("dcm")
class DependentClickFit(TopDownFit):
    """After a click at position k the user continues with probability λ_k, after a skip always; Guo et al. 2009."""

    def start(self) -> dict[str, Doubles]:
        """All alike."""
        return {"attractiveness": np.full(self.pairs, 0.3), "continuation": np.full(self.k, 0.5)}

    def after_click(self, values: Values, pair: Ints, position: Ints) -> Doubles:
        """λ_k."""
        return values["continuation"][position]

    def count(self, values: Values, passed: Passed) -> Iterator[Counted]:
        """By position of the click."""
        yield Counted("continuation", passed.position, passed.clicked * passed.onward, passed.clicked)

    def click_model(self, values: Values) -> ClickModel:
        """λ of the last position is not identified: that of the position above applies."""
        return DependentClickModel(continuation=tuple(values["continuation"][: max(1, self.k - 1)].tolist()))


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
