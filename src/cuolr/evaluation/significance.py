"""Paired significance tests of rankers, over queries."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from cuolr.errors import InputError
from cuolr.random import DEFAULT_SEED
from cuolr.types import Doubles

# Smaller differences are rounding errors, and count as ties.
TIE = 1e-12


@dataclass(frozen=True)
class Comparison:
    """Comparison of two rankers on the same queries.

    Attributes:
        queries: Number of queries that count for both.
        difference: Mean over queries of the first ranker's value minus the second's.
        interval: 95 % bootstrap interval (bias-corrected and accelerated) of the difference.
        t_test: p of the paired t-test, two-sided.
        permutation_test: p of the paired permutation test (random signs), two-sided.
        wins: Queries where the first is better.
        ties: Queries where both are equal.
        losses: Queries where the second is better.
    """

    queries: int
    difference: float
    interval: tuple[float, float]
    t_test: float
    permutation_test: float
    wins: int
    ties: int
    losses: int


def compare(first: Doubles, second: Doubles, seed: int = DEFAULT_SEED, resamples: int = 9_999) -> Comparison:
    """Compare two rankers by their values per query.

    Args:
        first: [n_queries]; NaN = the query does not count.
        second: [n_queries] values on the same queries.
        seed: Seed of the resampling.
        resamples: Number of permutations, and of bootstrap samples.
    """
    if first.shape != second.shape:
        raise InputError(f"expected values on the same queries, found {len(first)} and {len(second)} queries")
    counted = ~np.isnan(first) & ~np.isnan(second)
    differences = np.where(np.abs(first - second) > TIE, first - second, 0.0)[counted]
    if len(differences) < 2:
        raise InputError(f"expected at least 2 queries to compare, found {len(differences)}")
    wins, losses = int((differences > 0).sum()), int((differences < 0).sum())
    return Comparison(
        queries=len(differences),
        difference=float(differences.mean()),
        interval=_bootstrap_interval(differences, seed, resamples),
        t_test=_paired_t_test(differences),
        permutation_test=_permutation_test(differences, seed, resamples),
        wins=wins,
        ties=len(differences) - wins - losses,
        losses=losses,
    )


def t_interval(values: Sequence[float]) -> tuple[float, float]:
    """95 % interval of a mean by Student's t: mean ± t · s / √n.

    >>> [round(end, 3) for end in t_interval([1.0, 2.0, 3.0])]  # 2 ± 4.303 / √3
    [-0.484, 4.484]

    Args:
        values: At least two.
    """
    if len(values) < 2:
        raise InputError(f"expected at least 2 values for an interval, found {len(values)}")
    mean, error = float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(len(values)))
    half = float(scipy.stats.t.ppf(0.975, len(values) - 1)) * error
    return mean - half, mean + half


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's correction for a family of comparisons: p values that can be compared with 0.05 each.

    The i-th smallest of m is multiplied by m − i + 1, and is at least the one before it.

    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    values = np.asarray(p_values, np.float64)
    order = np.argsort(values)
    stepped = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1))
    corrected = np.empty_like(values)
    corrected[order] = np.minimum(stepped, 1.0)
    return [float(p) for p in corrected]


def stars(p_value: float) -> str:
    """The paper's marks of significance: `*` for p < 0.05, `**` for p < 0.01."""
    return "**" if p_value < 0.01 else "*" if p_value < 0.05 else ""


def _paired_t_test(differences: Doubles) -> float:
    if not differences.any():
        return 1.0
    if np.ptp(differences) == 0:
        return 0.0  # all differences are equal, so the standard error is 0
    return float(scipy.stats.ttest_1samp(differences, 0.0).pvalue)


def _permutation_test(differences: Doubles, seed: int, resamples: int) -> float:
    """Random signs: under the null hypothesis the two rankers are exchangeable."""
    if not differences.any():
        return 1.0
    result = scipy.stats.permutation_test(
        (differences,),
        np.mean,
        permutation_type="samples",
        n_resamples=resamples,
        vectorized=True,
        rng=np.random.default_rng(seed),
        batch=max(1, 20_000_000 // len(differences)),
    )
    return float(result.pvalue)


def _bootstrap_interval(differences: Doubles, seed: int, resamples: int) -> tuple[float, float]:
    if np.ptp(differences) == 0:
        return float(differences[0]), float(differences[0])
    result = scipy.stats.bootstrap(
        (differences,),
        np.mean,
        n_resamples=resamples,
        method="BCa",
        vectorized=True,
        rng=np.random.default_rng(seed),
        batch=max(1, 20_000_000 // len(differences)),
    )
    return float(result.confidence_interval.low), float(result.confidence_interval.high)
