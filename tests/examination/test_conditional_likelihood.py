import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuolr.examination.conditional_likelihood import effect_covariance, fit_effects, fit_weights, log_likelihood
from cuolr.types import Doubles

PRIOR = 0.5


def clicks_by(weights: list[float], scores: Doubles, exposure: Doubles, seed: int) -> Doubles:
    """Poisson clicks with means by these weights, times a random effect of each query."""
    rng = np.random.default_rng(seed)
    query = rng.normal(size=(scores.shape[1], 1))
    mean = exposure * np.exp(np.tensordot(weights, scores, axes=1) + query - 3)
    return rng.poisson(mean).astype(np.float64)


def random_scores(rankers: int, queries: int = 400, documents: int = 8, seed: int = 0) -> tuple[Doubles, Doubles]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rankers, queries, documents)), rng.uniform(0.5, 60, (queries, documents))


def test_the_weights_that_made_the_clicks_are_estimated() -> None:
    scores, exposure = random_scores(3)
    clicks = clicks_by([0.8, 0.0, 0.3], scores, exposure, seed=1)
    estimate = fit_weights(scores, clicks, exposure, PRIOR)
    np.testing.assert_allclose(estimate, [0.8, 0.0, 0.3], atol=0.05)


def test_no_weight_is_below_0() -> None:
    scores, exposure = random_scores(2)
    clicks = clicks_by([0.5, -0.7], scores, exposure, seed=1)
    estimate = fit_weights(scores, clicks, exposure, PRIOR)
    assert estimate[1] == 0
    assert estimate[0] > 0.2


def test_where_no_ranker_helps_all_weights_are_alike() -> None:
    scores, exposure = random_scores(2)
    for clicks in (np.zeros(exposure.shape), clicks_by([-0.5, -0.7], scores, exposure, seed=1)):
        assert fit_weights(scores, clicks, exposure, PRIOR).tolist() == [0.5, 0.5]


def test_documents_with_more_exposure_do_not_count_as_more_attractive() -> None:
    scores, exposure = random_scores(2)
    scores[1] = np.log(exposure)  # ranks by nothing but exposure
    clicks = clicks_by([0.6, 0.0], scores, exposure, seed=1)
    estimate = fit_weights(scores, clicks, exposure, PRIOR)
    assert estimate[1] < 0.05


@given(st.integers(0, 50))
def test_padding_and_queries_without_clicks_change_nothing(seed: int) -> None:
    scores, exposure = random_scores(2, queries=30, seed=seed)
    clicks = clicks_by([0.5, 0.2], scores, exposure, seed)
    wide = ((0, 3), (0, 2))
    padded = fit_weights(
        np.pad(scores, ((0, 0), *wide), constant_values=9.0), np.pad(clicks, wide), np.pad(exposure, wide), PRIOR
    )
    np.testing.assert_allclose(padded, fit_weights(scores, clicks, exposure, PRIOR), rtol=1e-4, atol=1e-6)


def test_no_other_weights_explain_the_clicks_better() -> None:
    scores, exposure = random_scores(2, queries=50)
    clicks = clicks_by([0.5, 0.2], scores, exposure, seed=3)
    estimate = fit_weights(scores, clicks, exposure, PRIOR)

    def likelihood(weights: Doubles) -> float:
        """Click by click."""
        total = 0.0
        for query in range(len(clicks)):
            logits = [
                sum(w * scores[i, query, d] for i, w in enumerate(weights)) + np.log(exposure[query, d])
                for d in range(clicks.shape[1])
            ]
            normaliser = np.log(np.sum(np.exp(logits)))
            total += sum(c * (logit - normaliser) for c, logit in zip(clicks[query], logits, strict=True))
        return total - PRIOR * float((weights**2).sum())

    best = likelihood(estimate)
    for step in ([0.01, 0], [-0.01, 0], [0, 0.01], [0, -0.01]):
        assert likelihood(estimate + step) < best


@pytest.mark.parametrize("rankers", [1, 4])
def test_there_is_a_weight_for_each_ranker(rankers: int) -> None:
    scores, exposure = random_scores(rankers, queries=20)
    clicks = clicks_by([0.5] * rankers, scores, exposure, seed=1)
    assert fit_weights(scores, clicks, exposure, PRIOR).shape == (rankers,)


def test_the_likelihood_is_that_of_clicks_that_fall_by_exposure_and_score() -> None:
    scores, clicks = np.log([[1.0, 2.0, 9.0], [1.0, 1.0, 1.0]]), np.array([[1.0, 2.0, 0.0], [0.0, 0.0, 5.0]])
    exposure = np.array([[6.0, 1.0, 0.0], [1.0, 1.0, 0.0]])
    assert log_likelihood(scores, clicks, exposure) == pytest.approx(np.log(6 / 8) + 2 * np.log(2 / 8))
    assert log_likelihood(scores, np.zeros((2, 3)), exposure) == 0


def test_the_effects_that_made_the_clicks_are_estimated_whatever_the_groups_are_like() -> None:
    rng = np.random.default_rng(1)
    effects = np.array([0.0, -0.5, -1.0, 0.7])
    exposure, covariate = rng.uniform(1, 50, (2_000, 4)), rng.normal(size=(2_000, 4))
    group = rng.normal(size=(2_000, 1)) - 2
    clicks = rng.poisson(exposure * np.exp(effects + 0.4 * covariate + group)).astype(np.float64)
    estimate, slope = fit_effects(clicks, exposure, covariate, PRIOR)
    np.testing.assert_allclose(estimate - estimate[0], effects, atol=0.03)
    assert slope == pytest.approx(0.4, abs=0.02)


def test_a_slope_below_0_is_0_and_the_effects_are_those_without_the_covariate() -> None:
    rng = np.random.default_rng(1)
    exposure, covariate = rng.uniform(1, 50, (500, 3)), rng.normal(size=(500, 3))
    clicks = rng.poisson(exposure * np.exp([-1.0, -1.5, -2.0] - 0.4 * covariate)).astype(np.float64)
    estimate, slope = fit_effects(clicks, exposure, covariate, PRIOR, min_slope=0.0)
    assert slope == 0
    without, _ = fit_effects(clicks, exposure, np.zeros_like(covariate), PRIOR)
    np.testing.assert_allclose(estimate - estimate[0], without - without[0], atol=1e-4)


def test_the_ratio_of_two_items_is_that_of_their_click_rates_where_all_groups_are_alike() -> None:
    """In closed form: with one group and no prior to speak of, e^(e_m) is the click rate, but for a factor."""
    clicks, exposure = np.array([[30.0, 5.0, 12.0]]), np.array([[100.0, 100.0, 20.0]])
    estimate, _ = fit_effects(clicks, exposure, np.zeros((1, 3)), prior=1e-9)
    np.testing.assert_allclose(np.exp(estimate - estimate[0]), [1.0, 5 / 30, (12 / 20) / 0.3], rtol=1e-3)


def test_an_item_that_is_never_clicked_has_a_finite_effect_and_one_never_exposed_none() -> None:
    clicks, exposure = np.array([[50.0, 0.0, 0.0]] * 20), np.array([[100.0, 100.0, 0.0]] * 20)
    estimate, slope = fit_effects(clicks, exposure, np.zeros((20, 3)), PRIOR)
    assert -20 < estimate[1] - estimate[0] < -4
    assert estimate[2] == 0
    assert slope == 0


def test_without_a_click_nothing_has_an_effect() -> None:
    estimate, slope = fit_effects(np.zeros((5, 3)), np.ones((5, 3)), np.ones((5, 3)), PRIOR)
    assert estimate.tolist() == [0.0] * 3
    assert slope == 0


def log_posterior_gradient(values: Doubles, clicks: Doubles, exposure: Doubles, covariate: Doubles) -> Doubles:
    """[G, M + 1] a plain version, group by group, without the prior."""
    items = clicks.shape[1]
    gradients = []
    for c, x, z in zip(clicks, exposure, covariate, strict=True):
        odds = [x[m] * np.exp(values[m] + values[items] * z[m]) for m in range(items)]
        residual = np.array([c[m] - sum(c) * odds[m] / sum(odds) for m in range(items)])
        gradients.append([*residual, sum(residual * z)])
    return np.array(gradients)


def test_the_covariance_is_that_of_a_plain_version() -> None:
    rng = np.random.default_rng(0)
    exposure, covariate = rng.uniform(0.5, 9, (30, 4)) * (rng.random((30, 4)) < 0.8), rng.normal(size=(30, 4))
    clicks = rng.poisson(exposure).astype(np.float64)
    unit = np.arange(30) // 3
    effects, slope = fit_effects(clicks, exposure, covariate, PRIOR)
    values: Doubles = np.append(effects, slope)

    def gradient(at: Doubles) -> Doubles:
        sums: Doubles = log_posterior_gradient(at, clicks, exposure, covariate).sum(axis=0) - 2 * PRIOR * at
        return sums

    step = 1e-5
    curvature = -np.stack([(gradient(values + d) - gradient(values - d)) / (2 * step) for d in step * np.eye(5)])
    inverse = np.linalg.inv(curvature)
    arguments = (clicks, exposure, covariate, values, PRIOR)
    np.testing.assert_allclose(effect_covariance(*arguments), inverse, rtol=1e-4, atol=1e-7)
    scores = log_posterior_gradient(values, clicks, exposure, covariate)
    of_units = [scores[unit == number].sum(axis=0) for number in range(10)]
    middle = 10 / 9 * sum(np.outer(score, score) for score in of_units) + 2 * PRIOR * np.eye(5)
    np.testing.assert_allclose(effect_covariance(*arguments, unit), inverse @ middle @ inverse, rtol=1e-4, atol=1e-7)


def test_errors_over_units_count_clicks_that_come_together_once() -> None:
    """Each group four times: errors over groups are half as large, errors over their origins stay the same."""
    rng = np.random.default_rng(1)
    exposure = np.full((500, 3), 5.0)
    clicks = rng.poisson(exposure).astype(np.float64)
    zeros = np.zeros((2_000, 3))
    origin = np.tile(np.arange(500), 4)
    repeated = np.tile(clicks, (4, 1)), np.tile(exposure, (4, 1)), zeros
    values = np.append(fit_effects(*repeated, PRIOR)[0], 0.0)
    alone = effect_covariance(clicks, exposure, zeros[:500], values, PRIOR / 4, np.arange(500))
    together = effect_covariance(*repeated, values, PRIOR, origin)
    apart = effect_covariance(*repeated, values, PRIOR, np.arange(2_000))

    def variance(covariance: Doubles) -> float:
        return float(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])

    assert variance(together) == pytest.approx(variance(alone), rel=0.01)
    assert variance(apart) == pytest.approx(variance(alone) / 4, rel=0.01)


def test_what_the_clicks_do_not_identify_has_the_variance_of_the_prior() -> None:
    """Items 1 and 2 are never in a group with items 3 and 4."""
    exposure = np.repeat([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]], 200, axis=0)
    clicks = np.random.default_rng(0).poisson(5 * exposure).astype(np.float64)
    values = np.append(fit_effects(clicks, exposure, np.zeros(exposure.shape), PRIOR)[0], 0.0)
    covariance = effect_covariance(clicks, exposure, np.zeros(exposure.shape), values, PRIOR, np.arange(400))
    between = np.array([1, 1, -1, -1, 0]) / 2
    assert between @ covariance @ between == pytest.approx(1 / (2 * PRIOR), rel=0.01)
    within = np.array([1, -1, 0, 0, 0])
    assert within @ covariance @ within < 0.01
