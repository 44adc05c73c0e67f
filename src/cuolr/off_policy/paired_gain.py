"""From the contributions of an estimator to the gain over production, paired, with a control variate."""

import numpy as np

from cuolr.off_policy.estimators.off_policy_estimator import ESTIMATORS, Contributions, OffPolicyEstimator
from cuolr.off_policy.gain_estimate import GainEstimate
from cuolr.off_policy.intervals import ratio_interval
from cuolr.off_policy.logged_lists import LoggedLists
from cuolr.types import Doubles

UNKNOWN = (-np.inf, np.inf)
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

    Args:
        lists: The logged lists.
        estimator: The estimator of the target policy's value.
        control_variate: Whether to subtract β* c_i. Estimators whose weights are centred do without.
    """
    found = estimator.contributions(lists)
    reward = lists.reward.sum(axis=1)
    sessions, logged = lists.by_unit(np.ones(len(reward))), lists.by_unit(reward)
    values = lists.by_unit(found.values)
    present = sessions > 0
    sessions, logged, values = sessions[present], logged[present], values[present]
    mean_reward = (lists.shown * lists.reward).sum(axis=0) / np.maximum(lists.shown.sum(axis=0), 1.0)
    beta = 0.0
    if control_variate and not found.centred:
        control = lists.by_unit(((found.weights - 1) * lists.where) @ mean_reward)[present]
        beta = best_baseline(values - logged, control, sessions)
        values = values - beta * control
    assumed = (found.assumed[0] + beta * mean_reward, found.assumed[1] + beta * mean_reward)
    return _reported(lists, estimator, found, (sessions, logged, values), (beta, assumed))


def best_baseline(difference: Doubles, control: Doubles, sessions: Doubles) -> float:
    """β*, which minimises the variance of Σ (difference − β · control) / Σ sessions.

    The regression of the units' residuals on each other, as the delta method has them. 0 if the control is constant.

    Args:
        difference: [number of units] sums over the sessions of each unit.
        control: [number of units] the same of the control variate.
        sessions: [number of units].
    """
    total = sessions.sum()
    residual = difference - sessions * difference.sum() / total
    of_control = control - sessions * control.sum() / total
    square = float(of_control @ of_control)
    return float(residual @ of_control) / square if square > 0 else 0.0


def _reported(
    lists: LoggedLists,
    estimator: OffPolicyEstimator,
    found: Contributions,
    by_unit: tuple[Doubles, Doubles, Doubles],
    corrected: tuple[float, tuple[Doubles, Doubles]],
) -> GainEstimate:
    sessions, logged, values = by_unit
    beta, assumed = corrected
    shown = lists.shown.sum(axis=0) / lists.sessions
    effective = _effective_sizes(lists, found.weights)
    overlap = bool((effective > 0).any())
    missing = _missing(lists, estimator, effective == 0)
    gain, interval = ratio_interval(values - logged, sessions)
    value, value_interval = ratio_interval(values, sessions)
    relative, relative_interval = ratio_interval(values - logged, logged)
    production = float(logged.sum() / sessions.sum())
    low, high = lists.limits
    worst = gain + float(missing @ (low - np.clip(assumed[1], low, high)))
    best = gain + float(missing @ (high - np.clip(assumed[0], low, high)))
    if not overlap:
        gain, value, relative, beta = 0.0, production, 0.0, 0.0
        interval = value_interval = relative_interval = UNKNOWN
        worst, best = float(shown @ low) - production, float(shown @ high) - production
    mean, errors = _mean_weights(lists, found.weights)
    support = lists.support
    return GainEstimate(
        estimator=ESTIMATORS.name_of(type(estimator)),
        units=len(sessions),
        sessions=lists.sessions,
        production=production,
        value=value,
        value_interval=value_interval,
        gain=gain,
        interval=interval,
        relative_gain=relative,
        relative_interval=relative_interval,
        control_variate=beta,
        effective_sample_size=float(effective[effective > 0].min()) if overlap else 0.0,
        mean_weights=tuple(mean.tolist()),
        errors_of_mean_weights=tuple(errors.tolist()),
        max_weight=estimator.max_weight,
        share_clipped=found.share_clipped,
        never_shown=None if support is None else support.never_shown,
        unobserved=None if support is None else float(support.unobserved[estimator.level].sum() / shown.sum()),
        unsupported=float(missing.sum() / shown.sum()),
        reward_limits=(float(low[0]), float(high[0])),
        worst_case=worst,
        best_case=best,
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
