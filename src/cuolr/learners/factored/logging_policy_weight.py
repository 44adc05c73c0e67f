"""Stage 5: whether to leave the logging policy, and how far.

What was learned from clicks and the model of the logging policy are each weighted by how well they explain clicks of
queries that the rankers were not trained on. Standard errors are over all queries together: many queries with few
clicks say as much as few queries with many. No weight is negative: production knows something. Where position bias is
not identifiable, because each query has one list, its weight is at least its standard error.
"""

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from scipy.stats import norm

from cuolr.config import Range, check_ranges
from cuolr.examination.conditional_likelihood import fit_weights
from cuolr.learners.factored.click_rates import ClickRates
from cuolr.learners.factored.first_clicks import FirstClicks
from cuolr.learners.factored.stacking import PRIOR, Stack
from cuolr.types import Doubles

# Least weight of the click-fitted rankers, in standard errors: with less, the logging policy is kept.
MIN_WEIGHT_IN_ERRORS = 1.0
# How significantly negative the logging policy's own weight must be: one-sided, at 1 %. So often one that says nothing
# of relevance is kept by mistake, and the price is all that was learned.
QUANTILE = float(norm.ppf(0.99))


@dataclass(frozen=True)
class LoggingPolicyConfig:
    """Settings of the logging-policy model in the ensemble.

    Attributes:
        include: Whether a model of the logging policy is a member of the ensemble.
        pessimism: Number of standard errors by which the weight of the click-fitted rankers is lowered, and that of
            the logging policy raised.
    """

    include: bool = True
    pessimism: Annotated[float, Range(0, 1e9)] = 0.0

    def __post_init__(self) -> None:
        check_ranges(self)


def weigh_against_logging_policy(
    stacked: Stack, rates: ClickRates, first_clicks: FirstClicks, pessimism: float, seed: int
) -> Stack:
    """Weigh the click-fitted rankers together against the last kind, the logging policy.

    Of the stack, the weights of the rankers relative to each other are used. They were fitted beside the logging
    policy, so that a ranker that only repeats its score gets little; the weight of the logging policy itself is not
    used, because it depends on the estimated examination.

    The logging policy alone remains if the rankers' weight is below `MIN_WEIGHT_IN_ERRORS`, or not above 0 after
    pessimism: the clicks show no gain. It also remains if position bias is not identifiable and its own weight, without
    the rankers, is significantly negative: a logging policy whose documents are clicked less at the same position knows
    more about these queries than its model, so that position and relevance are confounded.

    Args:
        stacked: The stack, with the logging policy as its last kind.
        rates: The queries that it was stacked on.
        first_clicks: The clicks of these and maybe other queries.
        pessimism: Number of standard errors.
        seed: Seed of the sample of queries.
    """
    weights, scores = stacked.weights, stacked.out_of_fold
    from_clicks = np.tensordot(weights[:-1], scores[:-1], axes=1)
    spread = float(from_clicks[rates.where].std())
    if spread == 0 or _confounded(first_clicks, scores[-1:], rates, seed):
        return _logging_policy_alone(stacked, rates)
    both = first_clicks.weights(np.stack([from_clicks / spread, scores[-1]]), rates, seed)
    least = np.array([0.0, 0.0 if first_clicks.identifiable else both.error[1]])
    of_both = np.maximum(mean_if_positive(both.value, both.error), least)
    lower, upper = of_both + pessimism * both.error * np.array([-1, 1])
    if lower <= 0 or both.value[0] <= MIN_WEIGHT_IN_ERRORS * both.error[0]:
        return _logging_policy_alone(stacked, rates)
    return replace(stacked, weights=np.append(weights[:-1] * lower / spread, upper))


def _logging_policy_alone(stacked: Stack, rates: ClickRates) -> Stack:
    """The logging policy's model as the only member, with the weight that best explains the clicks.

    The weight does not change the ranking, but steps are chosen by how well clicks are explained: by its own best
    weight, the logging policy is compared fairly with the stacks of other steps.
    """
    weights = np.zeros(len(stacked.weights))
    weights[-1] = fit_weights(stacked.out_of_fold[-1:], rates.rewards, rates.expected_examinations, PRIOR)[0]
    return replace(stacked, weights=weights)


def mean_if_positive(value: Doubles, error: Doubles) -> Doubles:
    """The posterior means of weights that cannot be negative: v + e · φ(v / e) / Φ(v / e), of a truncated normal.

    Close to the estimate where the error is small; where the log says nothing, about the error.

    >>> print(mean_if_positive(np.array([1.0, 0.0, -1.0]), np.array([0.1, 1.0, 1.0])).round(3))
    [1.    0.798 0.525]
    """
    ratio = value / np.maximum(error, 1e-12)
    mean: Doubles = value + error * np.exp(norm.logpdf(ratio) - norm.logcdf(ratio))
    return mean


def _confounded(first_clicks: FirstClicks, logging_policy: Doubles, rates: ClickRates, seed: int) -> bool:
    if first_clicks.identifiable:
        return False
    alone = first_clicks.weights(logging_policy, rates, seed)
    return bool(alone.value[0] + QUANTILE * alone.error[0] < 0)
