"""The numbers of a table, for each method in each setting, and the gap that it closes to the oracle."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy import stats

from cuolr.evaluation.significance import Comparison, stars
from cuolr.experiments.report.paper import PaperNumber
from cuolr.experiments.report.settings import Columns, Setting
from cuolr.experiments.results import CellResult
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


# A fold and a seed.
Run: TypeAlias = tuple[int, int]


@dataclass(frozen=True)
class Entry:
    """A method in a setting.

    Attributes:
        results: Results of the runs that finished.
        failed: Runs that failed.
        missing: Runs that have not been started.
    """

    results: Mapping[Run, CellResult]
    failed: tuple[Run, ...] = ()
    missing: tuple[Run, ...] = ()

    @property
    def planned(self) -> int:
        """The number of runs, finished or not."""
        return len(self.results) + len(self.failed) + len(self.missing)

    def equals(self, other: "Entry") -> bool:
        """Whether the same runs have the same value on every query, by every measure; false without any."""
        return self.results.keys() == other.results.keys() != set() and all(
            np.array_equal(values, other.results[run].per_query[measure], equal_nan=True)
            for run, result in self.results.items()
            for measure, values in result.per_query.items()
        )

    def mean(self, measure: str) -> float:
        """The mean over the runs that finished."""
        return float(np.mean([result.measures[measure] for result in self.results.values()]))

    def deviation(self, measure: str) -> float | None:
        """The standard deviation over the runs that finished; None for fewer than two."""
        values = [result.measures[measure] for result in self.results.values()]
        return float(np.std(values, ddof=1)) if len(values) > 1 else None

    def per_query(self, measure: str, runs: Sequence[Run]) -> list[Doubles]:
        """For each fold of these runs, [n_queries] the mean over seeds; NaN = the query does not count."""
        return [
            np.mean([self.results[run].per_query[measure] for run in runs if run[0] == fold], axis=0)
            for fold in sorted({fold for fold, _ in runs})
        ]


@dataclass(frozen=True)
class Score:
    """The result of a method in a setting, by one measure.

    Attributes:
        mean: Mean over the runs that finished; None without any.
        deviation: Standard deviation over them; None for fewer than two.
        finished: Number of runs that finished.
        planned: Number of runs, finished or not.
        failed: Number of runs that failed.
        best: Whether no other learner in the setting has a higher mean over as many runs.
        against: The best baseline, if the method is tested against it.
        comparison: Comparison with that baseline, over queries.
        p_value: p of the paired t-test, with Holm's correction over the table of the measure.
        gap: The gap closed; None if ORACLE is not significantly above LOGGING, or one of the three is missing.
        paper: The paper's number on the same data set.
        paper_gaps: The gap closed by the paper's numbers, by its data set.
    """

    mean: float | None
    deviation: float | None
    finished: int
    planned: int
    failed: int
    best: bool = False
    against: str = ""
    comparison: Comparison | None = None
    p_value: float | None = None
    gap: GapClosed | None = None
    paper: PaperNumber | None = None
    paper_gaps: Mapping[str, float] | None = None

    @property
    def mark(self) -> str:
        """`*` or `**` for significantly better than the best baseline, `†` for significantly worse."""
        if self.p_value is None or self.comparison is None:
            return ""
        if self.comparison.difference > 0:
            return stars(self.p_value)
        return "†" if self.p_value < SIGNIFICANT else ""


@dataclass(frozen=True)
class Table:
    """A table: methods by settings, for each measure.

    Attributes:
        columns: The settings and their labels.
        learners: The rows.
        contenders: The rows that may lead; of a sweep, only the value chosen on validation queries.
        references: The rows of the reference rankers, below those of the learners.
        scores: By method, setting and measure; no entry if the method is not run in the setting.
    """

    columns: Columns
    learners: tuple[str, ...]
    contenders: tuple[str, ...]
    references: tuple[str, ...]
    scores: Mapping[tuple[str, Setting, str], Score]

    def leader(self, setting: Setting, measure: str) -> str | None:
        """The contender with the highest mean over the most runs; None for fewer than two contenders."""
        scores = {m: s for m in self.contenders if (s := self.scores.get((m, setting, measure))) and s.finished}
        most = max((score.finished for score in scores.values()), default=0)
        means = {m: s.mean for m, s in scores.items() if s.mean is not None and s.finished == most}
        return max(means, key=lambda m: means[m]) if len(scores) > 1 else None
