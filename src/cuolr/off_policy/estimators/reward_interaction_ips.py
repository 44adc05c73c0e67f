"""Reward-interaction IPS: a reward is weighted by the probability of the documents down to its position."""

from dataclasses import dataclass
from typing import ClassVar

from cuolr.off_policy.estimators.off_policy_estimator import ESTIMATORS, ImportanceWeighting
from cuolr.off_policy.logged_lists import Level, LoggedLists
from cuolr.types import Doubles


@ESTIMATORS.register("reward-interaction-ips")
@dataclass(frozen=True, kw_only=True)
class RewardInteractionIPS(ImportanceWeighting):
    """Inverse propensities of the list down to each position: w_k = Π_{j ≤ k} π(d_j | above) / μ(d_j | above).

    McInerney et al. 2020, "Counterfactual evaluation of slate recommendations with sequential reward interactions".
    Unbiased if the reward at a position does not depend on the documents below it, as for users who read
    from the top: the position-based, cascade, user browsing, dependent click and dynamic Bayesian network models.

    Deviation: as in the Open Bandit Pipeline, weights always go back to the first position, and are normalised only
    with `self_normalised`.
    """

    level: ClassVar[Level] = "above"

    def weights(self, lists: LoggedLists) -> Doubles:
        """[M, K] the cumulative ratio."""
        return lists.ratio_above()
