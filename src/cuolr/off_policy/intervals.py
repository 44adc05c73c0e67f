"""Confidence intervals over queries."""

import numpy as np
from scipy import stats

from cuolr.types import Doubles

CONFIDENCE = 0.95
# What cannot be estimated.
UNKNOWN = (-np.inf, np.inf)


def ratio_interval(numerator: Doubles, denominator: Doubles) -> tuple[float, tuple[float, float]]:
    """Σ numerator / Σ denominator with its confidence interval; infinite if there are too few queries.

    The variance of the ratio is from the delta method. Queries with large denominators have more influence, so there
    are (Σ y)² / Σ y² effective queries, and Student's t has one degree of freedom less than that.

    Args:
        numerator: [number of queries] the numerator of each query.
        denominator: [number of queries] y, non-negative.
    """
    total = float(denominator.sum())
    if total <= 0:
        return 0.0, UNKNOWN
    ratio = float(numerator.sum()) / total
    freedom = total**2 / float((denominator**2).sum()) - 1
    if freedom <= 0:
        return ratio, UNKNOWN
    number = len(numerator)
    error = float(np.sqrt(number / (number - 1) * ((numerator - ratio * denominator) ** 2).sum())) / total
    error *= float(stats.t.ppf((1 + CONFIDENCE) / 2, freedom))
    return ratio, (ratio - error, ratio + error)
