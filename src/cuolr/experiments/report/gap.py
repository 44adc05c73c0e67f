"""The gap closed by a method between the logging policy and the oracle, comparable across data sets."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from cuolr.random import FIXED_SEED
from cuolr.types import Doubles

# Enough for percentiles shown as whole per cent.
RESAMPLES = 1_999
SIGNIFICANT = 0.05


@dataclass(frozen=True)
class GapClosed:
    """(method − LOGGING) / (ORACLE − LOGGING), with a 95 % interval; 0 = LOGGING, 1 = ORACLE."""

    value: float
    low: float
    high: float


def gap_closed(method: Sequence[Doubles], logging: Sequence[Doubles], oracle: Sequence[Doubles]) -> GapClosed | None:
    """The gap closed by the means over folds, with a percentile bootstrap interval over queries.

    None if there is no gap: ORACLE is not significantly above LOGGING (paired t-test over queries, p < 0.05).

    Args:
        method: For each fold, [n_queries] a value per query; NaN = the query does not count.
        logging: The same for the logging policy.
        oracle: The same for the oracle.
    """
    if not _is_above(np.concatenate(oracle), np.concatenate(logging)):
        return None
    gained = _equal_folds([m - low for m, low in zip(method, logging, strict=True)])
    possible = _equal_folds([high - low for high, low in zip(oracle, logging, strict=True)])
    with warnings.catch_warnings():
        # With few queries, a resample may have none that can be improved; it is dropped below.
        warnings.simplefilter("ignore", stats.DegenerateDataWarning)
        resampled = stats.bootstrap(
            (gained, possible),
            _ratio_of_means,
            paired=True,
            vectorized=True,
            n_resamples=RESAMPLES,
            method="percentile",
            rng=np.random.default_rng(FIXED_SEED),
            batch=max(1, 20_000_000 // len(gained)),
        ).bootstrap_distribution
    ratios = resampled[np.isfinite(resampled)]
    low, high = np.percentile(ratios, [2.5, 97.5])
    return GapClosed(float(_ratio_of_means(gained, possible)), float(low), float(high))


def _is_above(oracle: Doubles, logging: Doubles) -> bool:
    differences = (oracle - logging)[~np.isnan(oracle - logging)]
    if len(differences) < 2 or differences.mean() <= 0:
        return False
    return bool(np.ptp(differences) == 0 or stats.ttest_1samp(differences, 0.0).pvalue < SIGNIFICANT)


def _equal_folds(differences: Sequence[Doubles]) -> Doubles:
    """The values of all folds that count, scaled so that their mean is the mean of the folds' means."""
    counted = [values[~np.isnan(values)] for values in differences]
    share = sum(map(len, counted)) / len(counted)
    return np.concatenate([values * (share / len(values)) for values in counted if len(values)])


def _ratio_of_means(gained: Doubles, possible: Doubles, axis: int = -1) -> Any:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.mean(gained, axis=axis) / np.mean(possible, axis=axis)
