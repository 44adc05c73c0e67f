"""Confidence intervals over queries of which a few may decide, because their importance weights are large."""

import numpy as np
from scipy import stats

from cuolr.off_policy.intervals import CONFIDENCE, UNKNOWN
from cuolr.types import Doubles

# Fewest degrees of freedom of Student's t, whose quantile is then some 150.
MIN_FREEDOM = 0.5
# Highest leverage that residuals are corrected for.
MAX_LEVERAGE = 0.99


def heavy_tailed_interval(
    numerator: Doubles, denominator: Doubles, leverage: Doubles | None = None
) -> tuple[float, tuple[float, float]]:
    """Σ numerator / Σ denominator with its confidence interval; infinite if there are too few queries.

    As `ratio_interval`, by the delta method, with two corrections. Residuals e are divided by 1 − leverage: a query
    with a large control variate draws the regression to itself, so that its own residual is too small (HC3, MacKinnon
    and White 1985). And there are at most (Σ e²)² / Σ e⁴ effective queries, because those with large residuals decide
    the variance; of normal residuals these are a third of all. In simulations with some 50 effective sessions, 90 % of
    the intervals of reward-interaction IPS had the true gain, 80 % without these corrections.

    Args:
        numerator: [number of queries] the numerator of each query.
        denominator: [number of queries] y, non-negative.
        leverage: [number of queries] of the regression that the numerator is a residual of; None = no regression.
    """
    total = float(denominator.sum())
    if total <= 0:
        return 0.0, UNKNOWN
    ratio = float(numerator.sum()) / total
    residual = numerator - ratio * denominator
    if leverage is not None:
        residual = residual / (1 - np.minimum(leverage, MAX_LEVERAGE))
    number = len(residual)
    freedom = total**2 / float((denominator**2).sum()) - 1
    if number < 2 or freedom <= 0:
        return ratio, UNKNOWN
    largest = float(np.abs(residual).max())
    if largest == 0:
        return ratio, (ratio, ratio)
    scaled = (residual / largest) ** 2
    freedom = max(min(freedom, float(scaled.sum() ** 2 / (scaled**2).sum()) - 1), MIN_FREEDOM)
    error = largest * float(np.sqrt(number / (number - 1) * scaled.sum())) / total
    error *= float(stats.t.ppf((1 + CONFIDENCE) / 2, freedom))
    return ratio, (ratio - error, ratio + error)
