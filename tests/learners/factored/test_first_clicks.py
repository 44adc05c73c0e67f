from dataclasses import replace

import numpy as np
import pytest

from cuolr.data.normalise import Normaliser
from cuolr.examination.conditional_likelihood import effect_covariance, fit_effects
from cuolr.learners.factored.click_rates import ClickRates
from cuolr.learners.factored.first_clicks import FirstClicks
from cuolr.logs.counts import ClickCounts
from cuolr.logs.scaled_documents import ScaledDocuments
from cuolr.types import Doubles
from tests.learners.factored.rates import DOCUMENTS, random_rates
from tests.small_log import small_log

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
