"""The results of methods on a real log: examination, clicks, rewards and nDCG, each with an interval."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

import numpy as np
import scipy

from cuolr.evaluation.significance import holm
from cuolr.experiments.real_cells import NDCG, RealResult
from cuolr.experiments.real_data import RealData, by_position
from cuolr.logs.counts import ClickCounts
from cuolr.off_policy.intervals import CONFIDENCE, ratio_interval
from cuolr.types import Doubles

# The method that every other is compared with.
NAIVE = "naive"

# A value with its 95 % interval; the ends are None if they are not known.
Interval: TypeAlias = tuple[float, float | None, float | None]


@dataclass(frozen=True)
class ExaminationRow:
    """How far an estimate of examination is from that of the lists in random order.

    Attributes:
        estimate: Its name.
        error: The mean over positions of the absolute difference. Its interval is that of differences which are smaller
            or greater, at all positions at once, by 1.96 standard errors of the random lists.
        values: By position, relative to position 1; None = not known.
    """

    estimate: str
    error: Interval
    values: tuple[float | None, ...]


@dataclass(frozen=True)
class MethodRow:
    """What a method would earn.

    Attributes:
        method: Its name.
        seeds: Number of runs.
        values: `clicks` and `reward` per session on the lists in random order, and `ndcg@10` on labels.
        against_naive: The difference to naive of each value, with p of the paired t-test over queries, corrected by
            Holm over the methods.
        outcome: The relative gain over the logging policy on the lists in random order: in reward, if the log has it,
            else in clicks.
        outcome_on_new: The same, on the queries that no run was trained on; None if there are none.
        predicted: The gain that off-policy evaluation predicted from the training log; the mean over seeds.
        recommendation: What it recommended, for the first seed.
    """

    method: str
    seeds: int
    values: Mapping[str, Interval]
    against_naive: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    outcome: Interval | None = None
    outcome_on_new: Interval | None = None
    predicted: Interval | None = None
    recommendation: str = ""


@dataclass(frozen=True)
class RealSummary:
    """All of it.

    Attributes:
        data: Sizes of the parts of the log.
        random_examination: Of the lists in random order: values and standard errors.
        examination: A row per estimate.
        methods: A row per method.
        notes: What to keep in mind.
    """

    data: Mapping[str, Any]
    random_examination: tuple[Sequence[float | None], Sequence[float | None]] = ((), ())
    examination: tuple[ExaminationRow, ...] = ()
    methods: tuple[MethodRow, ...] = ()
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


def summarise(data: RealData, results: Mapping[str, Sequence[RealResult]], logging: str | None) -> RealSummary:
    """Compare all methods.

    Args:
        data: The log.
        results: The results of each method, one per seed.
        logging: The name of the logging policy among them; None = it is not.
    """
    rows = {name: _method_row(data, name, of_seeds) for name, of_seeds in results.items()}
    for measure in ("clicks", "reward", NDCG):
        _compare_with_naive(rows, results, measure)
    if logging is not None and data.judge is not None:
        earned = "clicks" if data.judge.reward is None else "reward"
        base = _mean_over_seeds(results[logging], earned)
        for name, of_seeds in results.items():
            gain = _mean_over_seeds(of_seeds, earned) - base
            new = np.ones(len(base), np.bool_)
            new[[query for result in of_seeds for query in result.trained_on]] = False
            on_new = _interval(gain[new], base[new]) if new.any() else None
            outcomes = {"outcome": _interval(gain, base), "outcome_on_new": on_new}
            rows[name] = MethodRow(**{**vars(rows[name]), **outcomes})
    curve: tuple[Sequence[float | None], Sequence[float | None]] = ((), ())
    if data.judge is not None and (found := data.random_examination.examination) is not None:
        curve = (found.values, found.standard_errors)
    return RealSummary(
        _sizes(data), curve, tuple(_examination_rows(data, results, curve)), tuple(rows.values()), tuple(_notes(data))
    )


def _sizes(data: RealData) -> dict[str, Any]:
    return {
        "name": data.name,
        "train_sessions": data.train.sessions,
        "random_sessions": 0 if data.judge is None else data.judge.sessions,
        "labelled_queries": 0 if data.labels is None else data.labels.candidates.n_queries,
    }


def _notes(data: RealData) -> list[str]:
    notes = []
    if not data.can_train:
        notes.append("no rankers: they need features, and lists of two or more documents")
    if data.judge is None:
        notes.append("no lists in random order: methods are judged by labels alone")
    return notes


def _mean_over_seeds(results: Sequence[RealResult], measure: str) -> Doubles:
    mean: Doubles = np.mean([result.values[measure] for result in results], axis=0)
    return mean


def _interval(numerator: Doubles, denominator: Doubles) -> Interval:
    value, (low, high) = ratio_interval(numerator, denominator)
    return value, low if np.isfinite(low) else None, high if np.isfinite(high) else None


def _sessions_by_query(data: RealData) -> Doubles:
    assert data.judge is not None
    return np.unique(data.judge.query, return_counts=True)[1].astype(np.float64)


def _method_row(data: RealData, name: str, results: Sequence[RealResult]) -> MethodRow:
    values = {}
    for measure in results[0].values:
        per_query = _mean_over_seeds(results, measure)
        counted = ~np.isnan(per_query)
        units = np.ones(len(per_query)) if measure == NDCG else _sessions_by_query(data)
        values[measure] = _interval(per_query[counted], units[counted])
    predicted = None
    if results[0].predicted:
        ends = np.array([[r.predicted["gain"], *(_or_nan(end) for end in r.predicted["interval"])] for r in results])
        gain, low, high = ends.mean(axis=0).tolist()
        predicted = (gain, None if np.isnan(low) else low, None if np.isnan(high) else high)
    return MethodRow(
        name,
        len(results),
        values,
        predicted=predicted,
        recommendation=str(results[0].predicted.get("recommendation", "")),
    )


def _or_nan(value: float | None) -> float:
    return np.nan if value is None else value


def _compare_with_naive(rows: dict[str, MethodRow], results: Mapping[str, Sequence[RealResult]], measure: str) -> None:
    """Add the difference to naive, and its p, to the rows of all other methods."""
    if NAIVE not in results or measure not in results[NAIVE][0].values:
        return
    base = _mean_over_seeds(results[NAIVE], measure)
    others = [name for name in results if name != NAIVE and measure in results[name][0].values]
    differences = {name: _mean_over_seeds(results[name], measure) - base for name in others}
    p_values = holm([_p_value(of_queries[~np.isnan(of_queries)]) for of_queries in differences.values()])
    for name, p in zip(others, p_values, strict=True):
        difference = rows[name].values[measure][0] - rows[NAIVE].values[measure][0]
        against = {**rows[name].against_naive, measure: (difference, p)}
        rows[name] = MethodRow(**{**vars(rows[name]), "against_naive": against})


def _p_value(differences: Doubles) -> float:
    if len(differences) < 2 or np.ptp(differences) == 0:
        return 1.0
    return float(scipy.stats.ttest_1samp(differences, 0.0).pvalue)


def _examination_rows(
    data: RealData,
    results: Mapping[str, Sequence[RealResult]],
    curve: tuple[Sequence[float | None], Sequence[float | None]],
) -> list[ExaminationRow]:
    if data.judge is None or not curve[0]:
        return []
    truth, error = (np.array([np.nan if v is None else v for v in values]) for values in curve)
    estimates = {
        "none: all positions alike (naive)": np.ones(len(truth)),
        "click rates": data.click_rates(),
        "from clicks": by_position(data.examination, ClickCounts.of(data.judge)),
    }
    for name, of_seeds in results.items():
        if of_seeds[0].examination:
            runs = [[np.nan if v is None else v for v in result.examination] for result in of_seeds]
            estimates[name] = np.mean(runs, axis=0)
    return [_examination_row(name, values, truth, error) for name, values in estimates.items()]


def _examination_row(name: str, values: Doubles, truth: Doubles, error: Doubles) -> ExaminationRow:
    k = min(len(values), len(truth))
    listed = tuple(None if np.isnan(value) else float(value) for value in values)
    known = np.flatnonzero(~np.isnan(values[:k]) & ~np.isnan(truth[:k]))
    known = known[known > 0]  # position 1 is 1 by definition
    if not len(known):
        return ExaminationRow(name, (np.nan, None, None), listed)
    difference = np.abs(values[known] - truth[known])
    margin = float(scipy.stats.norm.ppf((1 + CONFIDENCE) / 2)) * error[known]
    low, high = np.maximum(difference - margin, 0).mean(), (difference + margin).mean()
    return ExaminationRow(name, (float(difference.mean()), float(low), float(high)), listed)
