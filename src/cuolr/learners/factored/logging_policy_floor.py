"""Stage 5: shrinkage to the logging policy, through a lower bound on its weight.

Clicks compare shown documents with each other. Of a document that was never shown, the log says only that the logging
policy did not choose it. Only the model of the logging policy knows this.
"""

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from cuolr.config import Range, check_ranges
from cuolr.learners.factored.click_rates import ClickRates
from cuolr.learners.factored.stacking import Stack

# Upper limit on the floor.
MAX_MIN_WEIGHT = 100.0
# Clicks per query are capped at this: more clicks on head queries do not make the tail better known.
MAX_CLICKS_OF_A_QUERY = 1_000.0


@dataclass(frozen=True)
class LoggingPolicyConfig:
    """Settings of the logging-policy model in the ensemble.

    Attributes:
        include: Whether a model of the logging policy is a member of the ensemble.
        min_weight_steps: Floor on the weight of the logging policy. The floor is this divided by the steps taken,
            relative to the weight of the click-fitted rankers together.
        min_weight_clicks: Second floor on the weight of the logging policy: this divided by the clicks per query. The
            larger floor applies.
    """

    include: bool = True
    min_weight_steps: Annotated[float, Range(0, 1e9)] = 25.0
    min_weight_clicks: Annotated[float, Range(0, 1e9)] = 10.0

    def __post_init__(self) -> None:
        check_ranges(self)


def min_logging_policy_weight(rates: ClickRates, steps: int, config: LoggingPolicyConfig) -> float:
    """max(min_weight_steps / steps, min_weight_clicks / clicks per query), at most `MAX_MIN_WEIGHT`.

    If the log has rewards, they count as the number of clicks that say as much.
    """
    clicks = rates.rewards.sum(axis=1) * rates.information
    clicks_per_query = float(np.minimum(clicks, MAX_CLICKS_OF_A_QUERY).mean())
    by_steps = config.min_weight_steps / max(steps, 1)
    by_clicks = config.min_weight_clicks / max(clicks_per_query, 1e-9)
    return min(max(by_steps, by_clicks), MAX_MIN_WEIGHT)


def with_floor(stacked: Stack, min_weight: float) -> Stack:
    """Raise the weight of the last kind, the logging policy, to the floor.

    Args:
        stacked: The stack, with the logging policy as its last kind.
        min_weight: The floor, relative to the standard deviation of the weighted sum of all other kinds.
    """
    weights, scale, scores = stacked.weights.copy(), stacked.scale, stacked.sample_scores
    from_clicks = np.einsum("k,kp,kpn->n", weights[:-1], scale[:-1], scores[:-1]) / scale.shape[1]
    weights[-1] = max(weights[-1], min_weight * from_clicks.std())
    return replace(stacked, weights=weights)
