"""From the contributions of an estimator to the gain over production, paired, with a control variate."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cuolr.off_policy.estimators.off_policy_estimator import ESTIMATORS, OffPolicyEstimator
from cuolr.off_policy.gain_estimate import MIN_EFFECTIVE_SESSIONS, GainEstimate
from cuolr.off_policy.intervals import UNKNOWN, heavy_tailed_interval
from cuolr.off_policy.logged_lists import LoggedLists
from cuolr.types import Doubles

# Smaller differences of a mean weight from 1, and smaller errors of it, are those of single precision.
ROUNDING = 1e-6


def paired_gain(lists: LoggedLists, estimator: OffPolicyEstimator, control_variate: bool = True) -> GainEstimate:
    """Estimate the gain of the target policy over the logged sessions.

    Δ̂ = 1/n Σ_i (v_i − r_i − β* c_i), with v_i the contribution of session i, r_i its reward, and
    c_i = Σ_k (w_{i,k} − 1) r̄_k, whose expectation is 0: r̄_k is the mean logged reward at position k. Production is the
    logging policy, whose weights are 1. β* minimises the variance of Δ̂. With one weight per session this is Δ-OPE with
    β (Jeunen and Ustimenko 2024, "Δ-OPE: off-policy estimation with pairs of policies", arXiv 2405.10024), where
    β* = E[(w − 1)² r] / E[(w − 1)²].

    Deviation: the paper has one reward per session; r̄_k extends it to positions. β* minimises the variance over units,
    which the interval is made of, not over sessions; both are the same if each query has one session.
    Where weights are clipped or lists are unsupported, c_i has another expectation: what is missing then counts β* r̄_k.

    Args:
        lists: The logged lists.
        estimator: The estimator of the target policy's value.
        control_variate: Whether to subtract β* c_i. Estimators whose weights are centred do without.
    """
    found = estimator.contributions(lists)
    reward = lists.reward.sum(axis=1)
    mean_reward = (lists.shown * lists.reward).sum(axis=0) / np.maximum(lists.shown.sum(axis=0), 1.0)
    control = ((found.weights - 1) * lists.where) @ mean_reward
    used = control_variate and not found.centred
    by_unit = [lists.by_unit(values) for values in (np.ones(len(reward)), reward, found.values, control * used)]
    sessions, logged, values, controls = (values[by_unit[0] > 0] for values in by_unit)
    beta, leverage = best_baseline(values - logged, controls, sessions)
    sums = _UnitSums(sessions, logged, values - beta * controls, leverage)
    low, high = lists.limits
    assumed = [np.clip(reward + beta * mean_reward, low, high) for reward in found.assumed]
    effective = _effective_sizes(lists, found.weights)
    missing = _missing(lists, estimator, effective == 0)
    worst, best = float(missing @ (low - assumed[1])), float(missing @ (high - assumed[0]))
    mean, errors = _mean_weights(lists, found.weights)
    support, shown = lists.support, lists.shown.sum(axis=0) / lists.sessions
    estimate = GainEstimate(
        **sums.estimates(),
        estimator=ESTIMATORS.name_of(type(estimator)),
        sessions=lists.sessions,
        control_variate=beta,
        effective_sample_size=float(np.min(effective, where=effective > 0, initial=np.inf)),
        mean_weights=tuple(mean.tolist()),
        # The error of a mean of few large weights is not known.
        errors_of_mean_weights=tuple(np.where(effective >= MIN_EFFECTIVE_SESSIONS, errors, 0.0).tolist()),
        max_weight=estimator.max_weight,
        share_clipped=found.share_clipped,
        never_shown=None if support is None else support.never_shown,
        unobserved=None if support is None else float(support.unobserved[estimator.level].sum() / shown.sum()),
        unsupported=float(missing.sum() / shown.sum()),
        reward_limits=(float(low[0]), float(high[0])),
        worst_case=sums.gain + worst,
        best_case=sums.gain + best,
    )
    return estimate if effective.any() else _nothing_known(estimate, float(shown @ low), float(shown @ high))


def best_baseline(difference: Doubles, control: Doubles, sessions: Doubles) -> tuple[float, Doubles]:
    """β*, which minimises the variance of Σ (difference − β · control) / Σ sessions.

    The regression of the units' residuals on each other, as the delta method has them. 0 if the control is constant up
    to rounding, as if propensities are shares of sessions.

    Args:
        difference: [number of units] sums over the sessions of each unit.
        control: [number of units] the same of the control variate.
        sessions: [number of units].

    Returns:
        beta: β*.
        leverage: [number of units] of the regression.
    """
    total = sessions.sum()
    residual = difference - sessions * difference.sum() / total
    of_control = control - sessions * control.sum() / total
    square = float(of_control @ of_control)
    if square <= ROUNDING**2 * float(residual @ residual):
        return 0.0, np.zeros(len(sessions))
    return float(residual @ of_control) / square, of_control**2 / square


@dataclass(frozen=True)
class _UnitSums:
    """Sums over the sessions of each unit."""

    sessions: Doubles
    logged: Doubles
    values: Doubles
    leverage: Doubles

    @property
    def gain(self) -> float:
        return float((self.values - self.logged).sum() / self.sessions.sum())

    def estimates(self) -> dict[str, Any]:
        """The estimates and their intervals, by the names of `GainEstimate`."""
        gain = self.values - self.logged
        value, value_interval = heavy_tailed_interval(self.values, self.sessions, self.leverage)
        relative_gain, relative_interval = heavy_tailed_interval(gain, self.logged, self.leverage)
        return {
            "units": len(self.sessions),
            "production": float(self.logged.sum() / self.sessions.sum()),
            "value": value,
            "value_interval": value_interval,
            "gain": self.gain,
            "interval": heavy_tailed_interval(gain, self.sessions, self.leverage)[1],
            "relative_gain": relative_gain,
            "relative_interval": relative_interval,
        }


def _nothing_known(estimate: GainEstimate, lowest: float, highest: float) -> GainEstimate:
    """Without overlap: a gain of 0 with an infinite interval, within the limits of the reward."""
    return replace(
        estimate,
        value=estimate.production,
        value_interval=UNKNOWN,
        gain=0.0,
        interval=UNKNOWN,
        relative_gain=0.0,
        relative_interval=UNKNOWN,
        control_variate=0.0,
        effective_sample_size=0.0,
        worst_case=lowest - estimate.production,
        best_case=highest - estimate.production,
    )


def _missing(lists: LoggedLists, estimator: OffPolicyEstimator, without_weight: Doubles) -> Doubles:
    """[K] the share of sessions in which the policy shows what the log cannot say; all, at positions without weight."""
    shown: Doubles = lists.shown.sum(axis=0) / lists.sessions
    unsupported = 0.0 * shown if lists.support is None else lists.support.unsupported[estimator.level]
    return np.where(without_weight, shown, np.minimum(unsupported, shown))


def _effective_sizes(lists: LoggedLists, weights: Doubles) -> Doubles:
    """[K] (Σ w)² / Σ w² over the sessions that show a position; 0 without a weight."""
    total = (lists.shown * weights).sum(axis=0)
    square = (lists.shown * weights**2).sum(axis=0)
    sizes: Doubles = np.where(square > 0, total**2 / np.where(square > 0, square, 1.0), 0.0)
    return sizes


def _mean_weights(lists: LoggedLists, weights: Doubles) -> tuple[Doubles, Doubles]:
    """[K] each: the mean weight, and how many standard errors it is from 1."""
    k = weights.shape[1]
    means, errors = np.ones(k), np.zeros(k)
    for position in range(k):
        sessions = lists.by_unit(lists.where[:, position].astype(np.float64))
        if not sessions.any():
            continue
        total = lists.by_unit(weights[:, position] * lists.where[:, position])
        means[position] = total.sum() / sessions.sum()
        number = int((sessions > 0).sum())
        square = float(((total - means[position] * sessions) ** 2).sum()) * number / max(number - 1, 1)
        difference, error = means[position] - 1, float(np.sqrt(square) / sessions.sum())
        if abs(difference) > ROUNDING:
            errors[position] = difference / error if error > ROUNDING else np.copysign(np.inf, difference)
    return means, errors
