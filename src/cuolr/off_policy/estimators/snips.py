"""SNIPS: list IPS with weights that are divided by their mean."""

from dataclasses import dataclass

from cuolr.off_policy.estimators.list_ips import ListIPS
from cuolr.off_policy.estimators.off_policy_estimator import ESTIMATORS


@ESTIMATORS.register("snips")
@dataclass(frozen=True, kw_only=True)
class SelfNormalisedIPS(ListIPS):
    """Self-normalised list IPS: V̂ = Σ_i w_i r_i / Σ_i w_i; Swaminathan and Joachims 2015.

    The estimate of each position is within the range of the rewards seen there. The bias is of order 1/n.
    """

    self_normalised: bool = True
