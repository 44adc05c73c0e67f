"""Item-position IPS: a reward is weighted by the probability of its document at its position alone."""

from dataclasses import dataclass
from typing import ClassVar

from cuolr.off_policy.estimators.off_policy_estimator import ESTIMATORS, ImportanceWeighting
from cuolr.off_policy.logged_lists import Level, LoggedLists
from cuolr.types import Doubles


@ESTIMATORS.register("item-position-ips")
@dataclass(frozen=True, kw_only=True)
class ItemPositionIPS(ImportanceWeighting):
    """Inverse propensities of documents at positions: w_k = π(d_k at k) / μ(d_k at k), whatever stands above.

    Li et al. 2018, "Offline evaluation of ranking policies with click models". Unbiased if the reward at a
    position depends on the document there only, as under the position-based model. It has the least variance of the
    inverse-propensity estimators, and is biased for users who stop after a click.
    """

    level: ClassVar[Level] = "position"

    def weights(self, lists: LoggedLists) -> Doubles:
        """[M, K] the ratio of the marginal probabilities."""
        return lists.ratio_at()
