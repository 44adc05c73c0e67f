"""`cm-ipw`: inverse propensity weighting under cascade-based click models."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from cuolr.config import Range
from cuolr.errors import InputError
from cuolr.examination.propensities import Propensities, known_values
from cuolr.learners.counterfactual.debiased import DebiasedConfig, DebiasedLearner
from cuolr.logs.aggregate import aggregate
from cuolr.logs.page_positions import at_page_positions
from cuolr.training.base_learner import LEARNERS, FitTask, SearchSpace
from cuolr.training.batches import WeightedLists
from cuolr.types import Doubles


@dataclass(frozen=True)
class CmIpwConfig(DebiasedConfig):
    """Settings of CM-IPW, in addition to those of `DebiasedConfig`.

    Attributes:
        estimate: Estimate of continuation to use, if the propensities have several: mle or paper.
        max_weight: Upper limit on the weight of a click.
    """

    estimate: Literal["mle", "paper"] = "mle"
    max_weight: Annotated[float, Range(1)] = 100.0


@LEARNERS.register("cm-ipw")
class CMIPW(DebiasedLearner):
    """The list-wise softmax loss with each click weighted by 1 / P(E_k = 1 | C_<k), P = Π_{i<k} (1 − C_i (1 − λ_i)).

    Appendix A; Vardasbi et al. 2020, "Cascade model-based propensity estimation for counterfactual learning to rank".
    In the cascade model there are no clicks above a click, so all weights are 1 and this is `naive`. A reward has the
    weight of its click.
    """

    Config = CmIpwConfig
    config: CmIpwConfig
    takes_propensities = True
    search_space: ClassVar[SearchSpace] = {**DebiasedLearner.search_space, "learner.max_weight": (10.0, 100.0)}
    log_form = "sessions"

    def weighted_lists(self, task: FitTask) -> WeightedLists:
        """The lists, aggregated after each session's clicks and rewards are weighted."""
        log = at_page_positions(task.log)
        continuation = self.continuation(task.propensities, log.k)
        weighted = aggregate(log, lambda clicks: click_weights(clicks, continuation, self.config.max_weight))
        return WeightedLists.of(weighted)

    def continuation(self, propensities: Propensities | None, k: int) -> Doubles:
        """[K − 1] λ; the last position has no other below it."""
        if propensities is None:
            raise InputError(
                "cm-ipw needs the probability of continuing after a click: give propensities. `cuolr propensity` "
                "estimates them from a log in random order; `cuolr simulate --randomised-lists` saves them with a "
                "simulated log"
            )
        estimates = propensities.continuation
        estimate = estimates.get(self.config.estimate) or estimates.get("given")
        if estimate is None:
            known = ", ".join(estimates) or "none"
            raise InputError(f"propensities: expected 'continuation' by '{self.config.estimate}', found {known}")
        return known_values(estimate, k - 1, "propensities: continuation")


def click_weights(clicks: npt.NDArray[Any], continuation: Doubles, max_weight: float) -> Doubles:
    """[m, K] the weight of a click at each position, given the clicks above it in the same session.

    >>> click_weights(np.array([[1, 0, 1]]), np.array([0.5, 0.25]), max_weight=100)
    array([[1., 2., 2.]])
    """
    propensity = np.ones(clicks.shape)
    np.cumprod(np.where(clicks[:, :-1] > 0, continuation, 1.0), axis=1, out=propensity[:, 1:])
    return 1 / np.maximum(propensity, 1 / max_weight)
