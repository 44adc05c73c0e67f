"""Examination by position with confidence intervals, for all sessions and for each level of context."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri, stdtrit

from cuolr.examination.conditional_likelihood import effect_covariance, fit_effects
from cuolr.examination.effects import (
    PRIOR,
    DocumentGroups,
    effects_within_lists,
    sample_of_lists,
    without_click_above,
)
from cuolr.examination.identifiability import MAX_POSITIONS, Identifiability
from cuolr.logs.changed_candidates import MANY_QUERIES
from cuolr.logs.counts import ClickCounts
from cuolr.progress import Stages, no_stages
from cuolr.types import Doubles, Ints

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % confidence interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class ExaminationCurve:
    """Examination by position where nothing above was clicked, relative to position 1.

    Attributes:
        level: The level of context; "" = all sessions.
        sessions: Number of sessions.
        positions: [K] the estimate with its interval; None where it has no clicks to be estimated from.
    """

    level: str
    sessions: float
    positions: tuple[Interval | None, ...]


@dataclass(frozen=True)
class ExaminationCurves:
    """What a log says about examination.

    Attributes:
        from_documents: Whether they are from clicks on documents shown at several positions; otherwise from features.
        pooled: The curve of all sessions.
        by_context: The curve of each level of context, from its sessions alone; empty if there is one level.
        logging_policy_weight: β, the slope of log attractiveness on the standardised score of the logging policy, at
            the same position; None without features.
    """

    from_documents: bool
    pooled: ExaminationCurve
    by_context: tuple[ExaminationCurve, ...]
    logging_policy_weight: Interval | None

    @property
    def all(self) -> tuple[ExaminationCurve, ...]:
        """The curve of all sessions, and of each level."""
        return self.pooled, *self.by_context


def examination_curves(counts: ClickCounts, logging_scores: Doubles, stages: Stages = no_stages) -> ExaminationCurves:
    """Estimate the curves by conditional likelihoods (`ExaminationModel.from_counts`), with cluster-robust intervals.

    With documents shown at several positions, they are from impressions without a click above alone. A click there has
    probability χ(k)·α(d) under PBM, UBM, the cascade model and DCM, and whether a document has no click above does not
    depend on its own clicks. `ExaminationModel` uses all impressions, which biases its χ(k) where users who clicked
    stop, as under DCM. Otherwise the curve is that of the model, without its cap at the first position.

    In a level of context, the curve is estimated from the sessions of the level. A model partially pools levels
    instead, so that its curves are closer to each other.

    Deviation: intervals from features take the effect of a click above as known. Errors are clustered by query.

    Args:
        counts: The counts of the log.
        logging_scores: [L, K] the scores of the logging policy, or zeros.
        stages: Receives the progress.
    """
    top = counts.top(MAX_POSITIONS).pooled()
    k, everything = top.lists.k, np.arange(len(top.lists))
    progress = stages("estimating examination", k)
    from_documents = Identifiability.of(top).informative
    scores = logging_scores[:, :k]
    after_click, level, _ = effects_within_lists(top, scores, sample_of_lists(top, everything), progress)
    within, before_click = _WithinLists(top, scores, after_click), without_click_above(top)
    weight = within.estimate(everything)[1] if scores.any() else None

    def curve(name: str, lists: Ints) -> ExaminationCurve:
        prior_mean = np.exp(level - level[0])
        found = _within_documents(before_click, lists, prior_mean) if from_documents else within.estimate(lists)[0]
        return ExaminationCurve(name, float(top.lists.count[lists].sum()), found)

    levels = enumerate(counts.levels) if len(counts.levels) > 1 else iter(())
    by_context = (curve(name, np.flatnonzero(counts.level_of_list == i)) for i, name in levels)
    return ExaminationCurves(from_documents, curve("", everything), tuple(by_context), weight)


@dataclass(frozen=True)
class _WithinLists:
    """Step 2 of `ExaminationModel.from_counts`, with errors."""

    counts: ClickCounts
    scores: Doubles
    after_click: Doubles

    def estimate(self, lists: Ints) -> tuple[tuple[Interval | None, ...], Interval]:
        """The curve of these lists, and the weight of the logging policy.

        The curve is that of a weight ≥ 0, as in the model; the weight itself is free, because its sign is an alarm.
        """
        sample = sample_of_lists(self.counts, lists)
        impressions, clicks = (values.astype(np.float64) for values in self.counts.dense(sample))
        exposure = (impressions * self.after_click).sum(axis=2)
        by_position, scores = clicks.sum(axis=2), self.scores[sample]
        unit, quantile = _units(self.counts.lists.query[sample].astype(np.int64), by_position.sum(axis=1))

        def fit(min_slope: float | None) -> tuple[Doubles, Doubles]:
            values = np.append(*fit_effects(by_position, exposure, scores, PRIOR, min_slope))
            return values, effect_covariance(by_position, exposure, scores, values, PRIOR, unit)

        values, covariance = fit(None)
        slope, error = float(values[-1]), quantile * float(np.sqrt(covariance[-1, -1]))
        if slope < 0:
            values, covariance = fit(0.0)
        shown = exposure.sum(axis=0) > 0
        places = np.where(shown, np.arange(len(shown)), -1)
        curve = tuple(_relative_to_first(values, covariance, places, quantile))
        return curve, Interval(slope, slope - error, slope + error)


def _within_documents(counts: ClickCounts, lists: Ints, prior_mean: Doubles) -> tuple[Interval | None, ...]:
    """The curve from clicks on one document at several positions; counts without a click above.

    Args:
        counts: Counts without a click above.
        lists: The lists to estimate from.
        prior_mean: [K] the mean of the prior of χ.
    """
    groups = DocumentGroups.of(counts, lists)
    position = groups.items // (counts.lists.k + 1)
    exposure = groups.impressions * prior_mean[position]
    zeros = np.zeros(exposure.shape)
    corrections, _ = fit_effects(groups.clicks, exposure, zeros, PRIOR)
    unit, quantile = _units(groups.query, groups.clicks.sum(axis=1))
    covariance = effect_covariance(groups.clicks, exposure, zeros, np.append(corrections, 0.0), PRIOR, unit)
    values = np.log(prior_mean[position]) + corrections
    places = np.full(counts.lists.k, -1)
    places[position] = np.arange(len(position))
    return tuple(_relative_to_first(values, covariance, places, quantile))


def _relative_to_first(
    values: Doubles, covariance: Doubles, places: Ints, quantile: float
) -> Iterator[Interval | None]:
    """exp(value − first value) with its interval, at these places among the values; None at −1."""
    first = int(places[0])
    for place in places.tolist():
        if place < 0 or first < 0:
            yield None
            continue
        log_ratio = values[place] - values[first]
        variance = covariance[place, place] + covariance[first, first] - 2 * covariance[place, first]
        error = quantile * float(np.sqrt(max(variance, 0.0)))
        yield Interval(*(float(np.exp(log_ratio + shift)) for shift in (0.0, -error, error)))


def _units(query: Ints, clicks: Doubles) -> tuple[Ints | None, float]:
    """The units that errors are clustered by, None if queries are few, and the quantile of their distribution.

    Queries with many clicks have more influence, so there are (Σ c)² / Σ c² effective queries, and Student's t has one
    degree of freedom less than that.
    """
    of_query = np.bincount(np.unique(query, return_inverse=True)[1], weights=clicks) if len(query) else np.zeros(1)
    freedom = float(of_query.sum() ** 2 / max(float((of_query**2).sum()), 1e-9)) - 1
    if freedom + 1 < MANY_QUERIES:
        return None, float(ndtri((1 + CONFIDENCE) / 2))
    return query, float(stdtrit(freedom, (1 + CONFIDENCE) / 2))
