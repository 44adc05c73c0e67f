"""The conditional Poisson likelihood of clicks: where they fall within a group, given their number.

Let the clicks on item m of group g be Poisson with mean x_gm · exp(e_m + Σ_i w_i z_igm + b_g): x the exposure, e the
effect of the item in every group, z covariates, b the effect of the group. Given the number of clicks of the group, b
cancels: clicks fall on its items by softmax_m(log x + e + Σ_i w_i z_i), a multinomial likelihood that is concave in e
and w (McCullagh and Nelder 1989, chapter 6). Its score equations involve only the mean of the clicks, so the estimate
is consistent for clicks that are not Poisson, as long as the exposure does not depend on the group's clicks. If it
does, because users stop after a click, groups with attractive items above have too few clicks below, and the items
below seem better than they are. `ExaminationModel.from_counts` describes how this is handled.
"""

import numpy as np

from cuolr.types import Bools, Doubles, Ints

# Lower limit on the exposure of a shown item, because its logarithm is taken.
MIN_EXPOSURE = 1e-3


def fit_effects(
    clicks: Doubles, exposure: Doubles, covariate: Doubles | None, prior: float, min_slope: float | None = None
) -> tuple[Doubles, float]:
    """The maximum a posteriori e and w, with one covariate or none.

    Args:
        clicks: [G, M] the number of clicks on each item.
        exposure: [G, M] x, 0 = the group does not have the item.
        covariate: [G, M] z; None = 0, without its memory.
        prior: Half the inverse variance of a normal prior on e and w with mean 0.
        min_slope: Lower bound of w; None = no bound.

    Returns:
        effects: [M] e; only differences are identified.
        slope: w; 0 without a covariate.
    """
    items = clicks.shape[1]
    covariates = None if covariate is None else covariate[None]
    values = _maximise(clicks, exposure, covariates, prior, min_slope, effects=True)
    return values[:items], float(values[items])


def effect_covariance(
    clicks: Doubles, exposure: Doubles, covariate: Doubles, values: Doubles, prior: float, unit: Ints | None = None
) -> Doubles:
    """[M + 1, M + 1] the covariance matrix of the estimates of `fit_effects`.

    With H the negative second derivative of the log posterior, s_u the gradient of unit u and P the precision of the
    prior, H⁻¹ (Σ_u s_u s_uᵀ + P) H⁻¹ (cluster-robust, Liang and Zeger 1986), which holds whatever the distribution of
    clicks within a unit; H⁻¹ without units, which holds for independent clicks. What the clicks do not identify has the
    variance of the prior.

    Args:
        clicks: [G, M] the number of clicks on each item.
        exposure: [G, M] x, 0 = the group does not have the item.
        covariate: [G, M] z.
        values: [M + 1] the estimates of e and w.
        prior: As for the estimates.
        unit: [G] the unit of each group, such as its query; units are independent.
    """
    items = clicks.shape[1]
    clicks, offset, some = _with_clicks(clicks, exposure)
    covariate = covariate[some]
    logits = offset + values[:items] + values[items] * covariate
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    share, total = odds / odds.sum(axis=1, keepdims=True), clicks.sum(axis=1)
    # The second derivative, with the covariate as one more item: Σ_g n (diag(p) − p pᵀ) in the items.
    mean = (share * covariate).sum(axis=1)
    expected = np.column_stack([share, mean])
    curvature = -(expected * total[:, None]).T @ expected
    curvature[np.arange(items), np.arange(items)] += total @ share
    mixed = total @ (share * covariate)
    curvature[:items, items] += mixed
    curvature[items, :items] += mixed
    curvature[items, items] += total @ (share * covariate**2).sum(axis=1)
    precision = 2 * prior * np.eye(items + 1)
    inverse: Doubles = np.linalg.inv(curvature + precision)
    if unit is None:
        return inverse
    residual = clicks - total[:, None] * share
    numbers, place = np.unique(unit[some], return_inverse=True)
    gradient = np.zeros((len(numbers), items + 1))
    np.add.at(gradient, place, np.column_stack([residual, (residual * covariate).sum(axis=1)]))
    factor = len(numbers) / max(len(numbers) - 1, 1)
    covariance: Doubles = inverse @ (factor * gradient.T @ gradient + precision) @ inverse
    return covariance


def fit_weights(scores: Doubles, clicks: Doubles, exposure: Doubles, prior: float) -> Doubles:
    """The maximum a posteriori w ≥ 0, without item effects.

    Args:
        scores: [number of rankers, G, M] z.
        clicks: [G, M] the number of clicks on each item.
        exposure: [G, M] x, 0 = the group does not have the item.
        prior: Half the inverse variance of a normal prior on w with mean 0.

    Returns:
        [number of rankers] w; equal weights if no ranker explains the clicks.
    """
    weights = _maximise(clicks, exposure, scores, prior, 0.0, effects=False)
    return weights if weights.any() else np.full(len(scores), 1 / len(scores))


def log_likelihood(scores: Doubles, clicks: Doubles, exposure: Doubles) -> float:
    """Σ clicks · log softmax_m(log x + scores): how well scores explain where clicks fall.

    Args:
        scores: [G, M] Σ_i w_i z_i.
        clicks: [G, M] the number of clicks on each item.
        exposure: [G, M] x, 0 = the group does not have the item.

    >>> likelihood = log_likelihood(np.zeros((1, 2)), np.array([[3.0, 1.0]]), np.array([[9.0, 9.0]]))
    >>> round(float(np.exp(likelihood)), 4)  # 0.5⁴
    0.0625
    """
    clicks, offset, some = _with_clicks(clicks, exposure)
    if not len(clicks):
        return 0.0
    logits = offset + scores[some]
    logits = logits - logits.max(axis=1, keepdims=True)
    sums = np.exp(logits).sum(axis=1, keepdims=True)
    return float((clicks * np.where(clicks > 0, logits - np.log(sums), 0.0)).sum())


def _with_clicks(clicks: Doubles, exposure: Doubles) -> tuple[Doubles, Doubles, Bools]:
    """The clicks and log x (−∞ = no such item) of the groups that have clicks, and [G] which these are."""
    clicks = np.where(exposure > 0, clicks, 0.0)
    some: Bools = clicks.sum(axis=1) > 0
    with np.errstate(divide="ignore"):
        offset = np.where(exposure > 0, np.log(np.maximum(exposure, MIN_EXPOSURE)), -np.inf)
    return clicks[some], offset[some], some


def _maximise(
    clicks: Doubles,
    exposure: Doubles,
    covariates: Doubles | None,
    prior: float,
    min_weight: float | None,
    *,
    effects: bool,
) -> Doubles:
    """[M + number of covariates] e and w, or w alone, by L-BFGS-B; without covariates as with one that is 0."""
    from scipy.optimize import minimize  # takes half a second to load

    clicks, offset, some = _with_clicks(clicks, exposure)
    if covariates is not None and not some.all():
        covariates = covariates[:, some]
    weights = 1 if covariates is None else len(covariates)
    items = clicks.shape[1] if effects else 0
    of_group = clicks.sum(axis=1, keepdims=True)
    total = max(float(clicks.sum()), 1.0)

    def loss(values: Doubles) -> tuple[float, Doubles]:
        # In place: these arrays are the largest while examination is estimated.
        if covariates is None:
            logits = offset.copy()
        else:
            logits = np.tensordot(values[items:], covariates, axes=1)
            logits += offset
        if effects:
            logits += values[:items]
        logits -= logits.max(axis=1, keepdims=True)
        odds = np.exp(logits)
        sums = odds.sum(axis=1, keepdims=True)
        logits -= np.log(sums)
        logits[clicks == 0] = 0.0
        logits *= clicks
        likelihood = logits.sum()
        odds *= of_group
        odds /= sums
        residual = np.subtract(clicks, odds, out=odds)
        slopes = np.zeros(1) if covariates is None else np.tensordot(covariates, residual, axes=((1, 2), (0, 1)))
        gradient = np.concatenate([residual.sum(axis=0), slopes]) if effects else slopes
        return (prior * (values**2).sum() - likelihood) / total, (2 * prior * values - gradient) / total

    start = np.zeros(items + weights)
    if not len(clicks):
        return start
    bounds = [(None, None)] * items + [(min_weight, None)] * weights
    solution: Doubles = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    return solution
