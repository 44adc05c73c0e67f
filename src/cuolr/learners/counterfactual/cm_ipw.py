"""`cm-ipw`: inverse propensity weighting for users who read from the top and may leave after a click."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from cuolr.errors import InputError
from cuolr.examination.propensities import known_values, read_propensities
from cuolr.learners.counterfactual.listwise import ListwiseConfig
from cuolr.learners.counterfactual.naive import Naive
from cuolr.learners.gradient import expect
from cuolr.logs.aggregate import aggregate
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.log_folder import require_sessions
from cuolr.training.base_learner import LEARNERS
from cuolr.types import Doubles


@dataclass(frozen=True)
class CmIpwConfig(ListwiseConfig):
    """Settings of CM-IPW, on top of those of `ListwiseConfig`.

    Attributes:
        propensities: The file with the chance to go on after a click, by position.
        estimate: Which of the file's estimates to take, where it has several; see `cuolr.examination.randomised`.
        max_weight: No click counts more than this.
    """

    propensities: str | None = None
    estimate: Literal["mle", "paper"] = "mle"
    max_weight: float = 100.0

    def __post_init__(self) -> None:
        super().__post_init__()
        expect(self, max_weight=(1, float("inf")))


@LEARNERS.register("cm-ipw")
class CascadeModelWeighting(Naive):
    """The softmax list loss with each click weighted by 1 / P(E_k = 1 | C_<k), P = Π_{i<k} (1 − C_i (1 − λ_i)).

    Appendix A; Vardasbi et al. 2020, "Cascade model-based propensity estimation for counterfactual learning to rank".
    In the cascade model nothing above a click is clicked, so all weights are 1 and this is `naive`.
    """

    Config = CmIpwConfig
    config: CmIpwConfig
    needs_sessions = True

    def prepare(self, log: ClickLog) -> ClickLog:
        """The log, aggregated once each session's clicks have their weights."""
        require_sessions(log, "cm-ipw")
        continuation = self.continuation(log.k)
        return aggregate(log, lambda clicks: click_weights(clicks, continuation, self.config.max_weight))

    def continuation(self, k: int) -> Doubles:
        """[K − 1] λ; that of the last position has nothing to act on."""
        file = self.config.propensities
        if file is None:
            raise InputError(
                "cm-ipw needs to know how often users go on after a click: simulate the log with --randomised-lists, "
                "or give a file with --propensities (in Python, settings={'learner.propensities': FILE}); "
                "`cuolr propensity` makes one from a log in random order"
            )
        estimates = read_propensities(Path(file)).continuation
        estimate = estimates.get(self.config.estimate) or estimates.get("given")
        if estimate is None:
            found = ", ".join(estimates) or "none"
            raise InputError(f"{file}: expected 'continuation' by '{self.config.estimate}', found {found}")
        return known_values(estimate, k - 1, f"{file}: continuation")


def click_weights(clicks: npt.NDArray[Any], continuation: Doubles, max_weight: float) -> Doubles:
    """[m, K] the weight of a click at each position, given the clicks above it in the same session.

    >>> click_weights(np.array([[1, 0, 1]]), np.array([0.5, 0.25]), max_weight=100)
    array([[1., 2., 2.]])
    """
    propensity = np.ones(clicks.shape)
    np.cumprod(np.where(clicks[:, :-1] > 0, continuation, 1.0), axis=1, out=propensity[:, 1:])
    return 1 / np.maximum(propensity, 1 / max_weight)
