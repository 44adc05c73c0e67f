from dataclasses import replace

import numpy as np
import pytest

from cuolr.data.normalise import Normaliser
from cuolr.examination.conditional_likelihood import effect_covariance, fit_effects
from cuolr.learners.factored.click_rates import ClickRates
from cuolr.learners.factored.first_clicks import FirstClicks
from cuolr.learners.factored.logging_policy_weight import mean_if_positive, weigh_against_logging_policy
from cuolr.learners.factored.stacking import Stack, stack
from cuolr.logs.counts import ClickCounts
from cuolr.logs.scaled_documents import ScaledDocuments
from cuolr.policies.logging_policy_model import ClonedRanker
from cuolr.types import Doubles
from tests.learners.factored.rates import DOCUMENTS, by_feature, random_rates
from tests.small_log import small_log

QUERIES = 60
FOLD = np.arange(QUERIES) % 2


def clicked_by(*features: int) -> ClickRates:
    """Queries of the first fold are clicked by the first of these features, those of the second by the second."""
    rates = random_rates(QUERIES)
    values = rates.features[rates.documents].astype(np.float64)
    clicks = np.zeros(rates.rewards.shape)
    for fold, feature in enumerate(features):
        clicks[fold == FOLD] = 100 * np.exp(2 * values[fold == FOLD][:, :, feature])
    return replace(rates, rewards=clicks)


def weights_of(*kinds: list[ClonedRanker], rates: ClickRates) -> list[float]:
    """Of each kind, in the sum of scores."""
    members = dict(stack(kinds, rates, FOLD, seed=0).members())
    return [sum(members[ranker] for ranker in kind) for kind in kinds]


def test_the_ranker_that_explains_the_clicks_gets_the_weight() -> None:
    right, wrong = [by_feature(0), by_feature(0)], [by_feature(1), by_feature(1)]
    of_right, of_wrong = weights_of(right, wrong, rates=clicked_by(0, 0))
    assert of_right == pytest.approx(2.0, rel=0.01), "as the clicks were made"
    assert of_wrong == pytest.approx(0.0, abs=0.01)


def test_a_ranker_is_judged_by_queries_that_it_was_not_fitted_to() -> None:
    """The second kind is right on all that it was fitted to, and on nothing else."""
    right, overfitted = [by_feature(0), by_feature(1)], [by_feature(1), by_feature(0)]
    of_right, of_overfitted = weights_of(right, overfitted, rates=clicked_by(0, 1))
    assert of_right > 1
    assert of_overfitted == pytest.approx(0.0, abs=0.1)


def test_the_scale_of_a_rankers_scores_does_not_matter() -> None:
    rates = clicked_by(0, 0)
    [small] = weights_of([by_feature(0), by_feature(0)], rates=rates)
    [large] = weights_of([by_feature(0, 1e4), by_feature(0, 1e4)], rates=rates)
    assert small == pytest.approx(1e4 * large, rel=1e-4)


def test_a_ranker_that_does_not_discriminate_has_no_weight() -> None:
    flat = [by_feature(0, 0.0), by_feature(0, 0.0)]
    _, of_flat = weights_of([by_feature(0), by_feature(0)], flat, rates=clicked_by(0, 0))
    assert of_flat == 0


def test_a_ranker_that_serves_several_folds_is_one_member() -> None:
    one = by_feature(0)
    [(member, weight)] = stack([[one, one]], clicked_by(0, 0), FOLD, seed=0).members()
    assert member is one
    assert weight == pytest.approx(2.0, rel=0.01)


def test_documents_of_other_queries_do_not_matter() -> None:
    """Features are shared with queries that are held out."""
    rates = clicked_by(0, 0)
    more = np.concatenate([rates.features[:-1], np.full((500, rates.features.shape[1]), 9.0), rates.features[-1:]])
    kinds = [[by_feature(0), by_feature(0)]]
    alone, among_others = (
        stack(kinds, each, FOLD, seed=0) for each in (rates, replace(rates, features=more.astype(np.float32)))
    )
    np.testing.assert_array_equal(alone.scale, among_others.scale)
    np.testing.assert_array_equal(alone.weights, among_others.weights)


# log χ of the four positions.
EFFECTS = np.array([0.0, -0.3, -0.8, -1.2])


def scores_of(rates: ClickRates, *features: int) -> Doubles:
    """[number of features, R, N] features as scores."""
    return np.stack([rates.features[rates.documents][:, :, f] for f in features]).astype(np.float64)


def clicks_by(rates: ClickRates, score: Doubles, sessions: int, seed: int = 1) -> FirstClicks:
    """One list per query, in the order of its documents; users stop at the first click, as in the cascade model."""
    rng = np.random.default_rng(seed)
    chance = np.minimum(0.15 * np.exp(score + EFFECTS), 1.0)
    clicked = rng.random((sessions, *score.shape)) < chance
    above = np.cumsum(clicked, axis=2) - clicked
    impressions, clicks = (above == 0).sum(axis=0), (clicked & (above == 0)).sum(axis=0)
    position = np.broadcast_to(np.arange(DOCUMENTS), score.shape)
    seen = impressions > 0
    numbers = impressions[seen].astype(np.float64), clicks[seen].astype(np.float64)
    return FirstClicks(rates.documents[seen], position[seen], *numbers)


def test_impressions_without_a_click_above_are_counted_by_document_and_position() -> None:
    log = small_log(400, queries=12)
    counts = ClickCounts.of(log)
    shown = ScaledDocuments.of(counts.lists, Normaliser.fit("log-min-max", log.candidates))
    found = FirstClicks.of(counts, shown, np.arange(len(counts.lists)))
    expected: dict[tuple[int, int], list[int]] = {}
    for row in range(len(log)):
        for k in range(log.k):
            if log.ranking[row, k] >= 0 and not log.clicks[row, :k].any():
                number = expected.setdefault((int(log.documents[row, k]), k), [0, 0])
                number[0] += 1
                number[1] += int(log.clicks[row, k])
    pairs = zip(shown.rows[found.document].tolist(), found.position.tolist(), strict=True)
    numbers = np.column_stack([found.impressions, found.rewards]).astype(int).tolist()
    assert dict(zip(pairs, numbers, strict=True)) == expected


def test_weight_and_error_are_those_of_the_conditional_likelihood() -> None:
    """With a group for each query: an estimate by another optimiser, and its cluster-robust or model-based error."""
    rates = replace(random_rates(80), sessions=np.full(80, 30))
    [score] = scores_of(rates, 0)
    first_clicks = clicks_by(rates, score, sessions=30)
    impressions, clicks = np.zeros(score.shape), np.zeros(score.shape)
    impressions.ravel()[first_clicks.document] = first_clicks.impressions
    clicks.ravel()[first_clicks.document] = first_clicks.rewards
    effects, slope = fit_effects(clicks, impressions, score, prior=0.5)
    values = np.append(effects, slope)
    errors = [
        np.sqrt(effect_covariance(clicks, impressions, score, values, 0.5, unit)[-1, -1])
        for unit in (np.arange(80), None)
    ]
    found = first_clicks.weights(score[None], rates, seed=0)
    assert found.value[0] == pytest.approx(slope, abs=1e-3)
    assert found.error[0] == pytest.approx(max(errors), rel=1e-2)


@pytest.mark.parametrize(("queries", "sessions"), [(150, 100), (6_000, 2), (12_000, 1)])
def test_true_weights_are_recovered_however_few_sessions_a_query_has(queries: int, sessions: int) -> None:
    rates = replace(random_rates(queries), sessions=np.full(queries, sessions))
    scores = scores_of(rates, 0, 1)
    found = clicks_by(rates, 0.8 * scores[0], sessions).weights(scores, rates, seed=0)
    assert found.value == pytest.approx([0.8, 0.0], abs=0.12)
    assert (found.error < 0.06).all()


def test_errors_fall_with_the_number_of_queries() -> None:
    errors = []
    for queries in (100, 400):
        rates = replace(random_rates(queries), sessions=np.full(queries, 20))
        [score] = scores_of(rates, 0)
        errors.append(clicks_by(rates, score, sessions=20).weights(score[None], rates, seed=0).error[0])
    assert errors[0] / errors[1] == pytest.approx(2.0, rel=0.2)


def test_a_score_that_follows_from_the_position_has_a_large_error() -> None:
    """As that of a logging policy that shows one list per query: relevance and position are confounded."""
    rates = replace(random_rates(200), sessions=np.full(200, 20))
    free, noise = scores_of(rates, 0, 1)
    confounded = np.sort(free, axis=1)[:, ::-1] * 0.05 - np.arange(DOCUMENTS) + 0.05 * noise
    first_clicks = clicks_by(rates, free, sessions=20)
    error = first_clicks.weights(np.stack([free, confounded / confounded.std()]), rates, seed=0).error
    assert error[1] > 4 * error[0]


def test_without_clicks_a_weight_is_0_with_the_error_of_its_prior() -> None:
    rates = random_rates(20)
    scores = scores_of(rates, 0)
    first_clicks = clicks_by(rates, scores[0], sessions=5)
    found = replace(first_clicks, rewards=np.zeros_like(first_clicks.rewards)).weights(scores, rates, seed=0)
    assert found.value[0] == 0
    assert found.error[0] == pytest.approx(1.0)


# The feature of the ranker that was fitted to clicks, and that of the logging policy.
FITTED, LOGGING = 0, 1


def stacked_on(queries: int, sessions: int, weights: tuple[float, float]) -> tuple[Stack, ClickRates, FirstClicks]:
    """A stack of both, with clicks by log α = their weighted sum."""
    rates = replace(random_rates(queries), sessions=np.full(queries, sessions))
    attractiveness = np.tensordot(weights, scores_of(rates, FITTED, LOGGING), axes=1)
    first_clicks = clicks_by(rates, attractiveness, sessions)
    rewards: Doubles = np.zeros(rates.rewards.shape)
    rewards.ravel()[first_clicks.document] = first_clicks.rewards
    rates = replace(rates, rewards=rewards)
    kinds = [[by_feature(FITTED)] * 2, [by_feature(LOGGING)] * 2]
    return stack(kinds, rates, np.arange(queries) % 2, seed=0), rates, first_clicks


def test_each_weight_is_at_the_end_of_its_interval_near_the_logging_policy() -> None:
    stacked, rates, first_clicks = stacked_on(300, 20, (1.0, 0.5))
    [fitted, logging] = stacked.out_of_fold
    found = first_clicks.weights(np.stack([fitted / fitted.std(), logging]), rates, seed=0)
    of_fitted, of_logging = weigh_against_logging_policy(stacked, rates, first_clicks, 2.0, seed=0).weights
    # Both are many errors above 0, so that their sign says nothing more.
    assert of_fitted * fitted.std() == pytest.approx(found.value[0] - 2 * found.error[0])
    assert of_logging == pytest.approx(found.value[1] + 2 * found.error[1], rel=1e-3)


def test_a_weight_that_the_clicks_do_not_tell_is_about_its_error() -> None:
    found = mean_if_positive(np.array([-0.2, 0.0, 0.3, 5.0]), np.array([1.0, 1.0, 1.0, 0.5]))
    by_integration = []
    grid = np.linspace(0, 12, 200_001)
    for value, error in ((-0.2, 1.0), (0.0, 1.0), (0.3, 1.0), (5.0, 0.5)):
        density = np.exp(-0.5 * ((grid - value) / error) ** 2)
        by_integration.append((grid * density).sum() / density.sum())
    np.testing.assert_allclose(found, by_integration, rtol=1e-3)


def test_the_weight_of_the_logging_policy_is_at_least_its_error_where_position_bias_is_not_identifiable() -> None:
    """With ten queries and no weight in truth, its estimate is negative in this sample."""
    stacked, rates, first_clicks = stacked_on(10, 20, (2.0, -0.1))
    [fitted, logging] = stacked.out_of_fold
    found = first_clicks.weights(np.stack([fitted / fitted[rates.where].std(), logging]), rates, seed=0)
    assert -found.error[1] < found.value[1] < 0.5 * found.error[1]
    unknown = weigh_against_logging_policy(stacked, rates, first_clicks, 0.0, seed=0).weights
    known = weigh_against_logging_policy(stacked, rates, replace(first_clicks, identifiable=True), 0.0, seed=0).weights
    assert unknown[1] == pytest.approx(found.error[1])
    assert 0 < known[1] < unknown[1]


def test_the_evidence_is_in_all_queries_together() -> None:
    """As many sessions of as many queries as they have: the tail is believed no less than the head."""
    ratios = []
    for queries, sessions in ((100, 40), (4_000, 1)):
        of_fitted, of_logging = weigh_against_logging_policy(
            *stacked_on(queries, sessions, (1.0, 0.2)), 1.0, seed=0
        ).weights
        ratios.append(of_fitted / of_logging)
    assert ratios[1] == pytest.approx(ratios[0], rel=0.5)
    few = weigh_against_logging_policy(*stacked_on(10, 1, (1.0, 0.2)), 1.0, seed=0).weights
    assert few[0] / few[1] < ratios[1] / 4


@pytest.mark.parametrize(
    "weights",
    [(-0.5, 1.0), (1.0, -1.5)],
    ids=["the rankers are wrong", "position and relevance are confounded"],
)
def test_the_logging_policy_alone_is_kept(weights: tuple[float, float]) -> None:
    stacked, rates, first_clicks = stacked_on(200, 20, weights)
    kept = weigh_against_logging_policy(stacked, rates, first_clicks, 1.0, seed=0)
    of_fitted, of_logging = kept.weights
    assert of_fitted == 0
    assert of_logging > 0


def test_a_logging_policy_that_may_say_nothing_of_relevance_is_left() -> None:
    """Its own weight is negative by two errors, as that of one random logging policy in 67 is."""
    stacked, rates, first_clicks = stacked_on(60, 20, (1.0, -0.1))
    alone = first_clicks.weights(stacked.out_of_fold[-1:], rates, seed=0)
    assert -2.3 < alone.value[0] / alone.error[0] < -2
    of_fitted, of_logging = weigh_against_logging_policy(stacked, rates, first_clicks, 0.0, seed=0).weights
    assert of_fitted > 3 * of_logging > 0


def test_the_logging_policy_alone_explains_clicks_by_its_best_weight() -> None:
    stacked, rates, first_clicks = stacked_on(200, 20, (-0.5, 0.4))
    kept = weigh_against_logging_policy(stacked, rates, first_clicks, 1.0, seed=0)
    none = rates.select(np.arange(0))
    for factor in (0.8, 1.25):
        other = replace(kept, weights=factor * kept.weights)
        assert kept.clicks_explained(rates, none) > other.clicks_explained(rates, none)


def test_a_logging_policy_that_is_wrong_loses_its_weight_where_position_bias_is_identifiable() -> None:
    stacked, rates, first_clicks = stacked_on(200, 20, (1.0, -1.5))
    known = replace(first_clicks, identifiable=True)
    of_fitted, of_logging = weigh_against_logging_policy(stacked, rates, known, 0.0, seed=0).weights
    assert of_fitted > 0
    assert 0 <= of_logging < 0.05 * of_fitted


def test_the_logging_policy_alone_is_kept_without_clicks() -> None:
    stacked, rates, first_clicks = stacked_on(50, 5, (1.0, 0.0))
    without = replace(first_clicks, rewards=np.zeros_like(first_clicks.rewards))
    assert weigh_against_logging_policy(stacked, rates, without, 1.0, seed=0).weights.tolist() == [0.0, 1.0]
