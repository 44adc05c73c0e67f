"""How many sessions a test needs to find the estimated gain."""

import numpy as np
from scipy.stats import norm

# Two-sided significance level, and power.
SIGNIFICANCE, POWER = 0.05, 0.8


def sessions_needed(mean: float, variance: float) -> int | None:
    """N = (z_{1 − α/2} + z_{power})² · σ² / μ², so that the mean of N sessions differs significantly from 0.

    Args:
        mean: μ, of a session.
        variance: σ², of a session. For the difference between two arms of N sessions each, the sum over both.

    Returns:
        None if the mean is not above 0: there is nothing to find.
    """
    if not mean > 0:
        return None
    quantiles = float(norm.ppf(1 - SIGNIFICANCE / 2) + norm.ppf(POWER))
    return int(np.ceil(quantiles**2 * variance / mean**2))
