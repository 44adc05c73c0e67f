"""An off-policy evaluation of 100 queries, for tests of what is made of one."""

from cuolr.off_policy.gain_estimate import GainByEstimator
from cuolr.off_policy.recommendation import OffPolicyEvaluation


def evaluated(
    *estimates: GainByEstimator,
    gain: float,
    interval: tuple[float, float],
    never_shown: float = 0.0,
    overlap: float = 1.0,
) -> OffPolicyEvaluation:
    """The evaluation by these estimators, on a log that identifies position bias."""
    return OffPolicyEvaluation(
        queries=100,
        k=10,
        trained_on_these_queries=False,
        never_shown=never_shown,
        overlap=overlap,
        gain=gain,
        interval=interval,
        estimates=estimates,
        logging_policy_share=None,
        logging_policy_overlap=None,
        identifiable=True,
    )
