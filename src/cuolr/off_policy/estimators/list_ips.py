"""List IPS: sessions whose whole list the target policy could have shown, weighted by how likely it would."""

from dataclasses import dataclass

import numpy as np

from cuolr.off_policy.estimators.off_policy_estimator import ESTIMATORS, ImportanceWeighting
from cuolr.off_policy.logged_lists import LoggedLists
from cuolr.types import Doubles


@ESTIMATORS.register("list-ips")
@dataclass(frozen=True, kw_only=True)
class ListIPS(ImportanceWeighting):
    """Inverse propensities of whole lists: w = Π_k π(d_k | above) / μ(d_k | above), the same at all positions.

    Horvitz and Thompson 1952; for lists, Swaminathan et al. 2017, "Off-policy evaluation for slate recommendation".
    Unbiased for any user, whose rewards may depend on documents above and below. The variance grows
    exponentially with the length of the list.
    """

    def weights(self, lists: LoggedLists) -> Doubles:
        """[M, K] the ratio of the probabilities of the list."""
        ratio = lists.ratio_above()
        return np.where(lists.where, ratio[:, -1:], 1.0)
