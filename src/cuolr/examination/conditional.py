"""Where clicks fall, given how many there are: the likelihood by which looking is learned, and rankers are weighed.

Let clicks on thing m of group g be Poisson with mean x_gm · exp(e_m + Σ_i w_i z_igm + b_g): x how often it was exposed,
e what holds for the thing in every group, z what is known of it in this one, and b whatever is special about the group.
Given the clicks of the group, b does not matter: they fall on its things by softmax_m(log x + e + Σ_i w_i z_i). The
logarithm of that has one maximum in e and w, and there its slope is 0, which asks no more than that the mean clicks are
as above: that clicks are not Poisson does not matter, where the exposure does not depend on the clicks of the group.
Where it does, because users stop at a click, groups with much to click above have fewer clicks below than that, and the
things below seem better than they are; `fit_examination` says what it does about it.
"""

import numpy as np

from cuolr.types import Doubles

# Exposure of a thing that was there and that nobody looked at: its logarithm is taken.
LEAST_EXPOSURE = 1e-3


def fit_effects(clicks: Doubles, exposure: Doubles, covariate: Doubles, prior: float) -> tuple[Doubles, float]:
    """The most likely e and w.

    Args:
        clicks: [G, M].
        exposure: [G, M] x, 0 = the group has no such thing.
        covariate: [G, M] z.
        prior: Half the inverse variance of e and w before a click is seen.

    Returns:
        effects: [M] e, of which differences alone mean something.
        slope: w.
    """
    things = clicks.shape[1]
    found = _maximise(clicks, exposure, covariate[None], True, prior, None)
    return found[:things], float(found[things])


def fit_weights(scores: Doubles, clicks: Doubles, exposure: Doubles, prior: float) -> Doubles:
    """The most likely w ≥ 0, without e.

    Args:
        scores: [number of rankers, G, M] z.
        clicks: [G, M].
        exposure: [G, M] x, 0 = the group has no such thing.
        prior: Half the inverse variance of w before a click is seen.

    Returns:
        [number of rankers]; all alike where no ranker explains a click.
    """
    weights = _maximise(clicks, exposure, scores, False, prior, 0.0)
    return weights if weights.any() else np.full(len(scores), 1 / len(scores))


def _maximise(
    clicks: Doubles, exposure: Doubles, covariates: Doubles, effects: bool, prior: float, least: float | None
) -> Doubles:
    """[M + number of covariates] e and w, or w alone."""
    from scipy.optimize import minimize  # takes half a second to load

    some = (clicks * (exposure > 0)).sum(axis=1) > 0
    exposure, covariates = exposure[some], covariates[:, some]
    clicks = np.where(exposure > 0, clicks[some], 0.0)
    with np.errstate(divide="ignore"):
        offset = np.where(exposure > 0, np.log(np.maximum(exposure, LEAST_EXPOSURE)), -np.inf)
    things = clicks.shape[1] if effects else 0
    of_group = clicks.sum(axis=1, keepdims=True)
    total = max(float(clicks.sum()), 1.0)

    def loss(values: Doubles) -> tuple[float, Doubles]:
        logits = offset + np.tensordot(values[things:], covariates, axes=1) + (values[:things] if effects else 0.0)
        logits = logits - logits.max(axis=1, keepdims=True)
        chance = np.exp(logits)
        sums = chance.sum(axis=1, keepdims=True)
        unexplained = clicks - of_group * chance / sums
        explained = (clicks * np.where(clicks > 0, logits - np.log(sums), 0.0)).sum()
        slopes = np.tensordot(covariates, unexplained, axes=((1, 2), (0, 1)))
        gradient = np.concatenate([unexplained.sum(axis=0), slopes]) if effects else slopes
        return (prior * (values**2).sum() - explained) / total, (2 * prior * values - gradient) / total

    start = np.zeros(things + len(covariates))
    if not len(clicks):
        return start
    found: Doubles = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=[(least, None)] * len(start)).x
    return found
