from dataclasses import replace

import numpy as np
import pytest

from cuolr.learners.factored.click_rates import Evidence
from cuolr.learners.factored.stacking import least_trust, weigh
from cuolr.policies.linear_policy import LinearPolicy
from cuolr.policies.logging_policy import Imitation
from tests.learners.lists import N_FEATURES, no_scaling, random_batch

QUERIES = 60
# Queries 0, 2, … are one part, 1, 3, … the other.
PARTS = [np.arange(0, QUERIES, 2), np.arange(1, QUERIES, 2)]


def by_feature(number: int, factor: float = 1.0) -> Imitation:
    """Scores documents by one feature."""
    weights = np.zeros(N_FEATURES, np.float32)
    weights[number] = factor
    return Imitation(LinearPolicy(weights, no_scaling()))


def clicked_by(*features: int) -> Evidence:
    """Queries of the first part are clicked by the first of these features, those of the second by the second."""
    evidence = Evidence.of_batch(random_batch(lengths=(4,) * QUERIES))
    values = evidence.features[evidence.documents].double().numpy()
    clicked = np.zeros(values.shape[:2])
    for rows, feature in zip(PARTS, features, strict=True):
        clicked[rows] = 100 * np.exp(2 * values[rows, :, feature])
    return replace(evidence, clicked=clicked, looked=np.full(clicked.shape, 1_000.0))


def test_what_explains_the_clicks_gets_the_weight() -> None:
    right, wrong = [by_feature(0), by_feature(0)], [by_feature(1), by_feature(1)]
    weights = dict(weigh([right, wrong], [], 0.0, clicked_by(0, 0), PARTS, seed=0))
    assert sum(weights[ranker] for ranker in right) == pytest.approx(2.0, rel=0.01), "as the clicks were made"
    assert sum(weights[ranker] for ranker in wrong) == pytest.approx(0.0, abs=0.01)


def test_a_ranker_is_judged_by_queries_that_it_did_not_learn_from() -> None:
    """The second kind is right on all that it learned from, and on nothing else."""
    right, learned_by_heart = [by_feature(0), by_feature(1)], [by_feature(1), by_feature(0)]
    weights = dict(weigh([right, learned_by_heart], [], 0.0, clicked_by(0, 1), PARTS, seed=0))
    assert sum(weights[ranker] for ranker in right) > 1
    assert sum(weights[ranker] for ranker in learned_by_heart) == pytest.approx(0.0, abs=0.1)


def test_the_unit_of_a_rankers_scores_does_not_matter() -> None:
    evidence = clicked_by(0, 0)
    small, large = [by_feature(0), by_feature(0)], [by_feature(0, 1e4), by_feature(0, 1e4)]
    (_, weight), *_ = weigh([small], [], 0.0, evidence, PARTS, seed=0)
    (_, weight_of_large), *_ = weigh([large], [], 0.0, evidence, PARTS, seed=0)
    assert weight == pytest.approx(1e4 * weight_of_large, rel=1e-4)


@pytest.mark.parametrize("trust", [0.5, 3.0])
def test_the_logged_order_has_at_least_the_trust_that_is_asked_for(trust: float) -> None:
    learned, logged_order = [by_feature(0), by_feature(0)], by_feature(1)  # which explains nothing
    evidence = clicked_by(0, 0)
    weights = weigh([learned], [logged_order] * 2, trust, evidence, PARTS, seed=0)
    by_clicks = sum(weight * ranker.score(evidence.features) for ranker, weight in weights if ranker in learned)
    by_log = dict(weights)[logged_order] * logged_order.score(evidence.features)
    assert np.std(by_log) == pytest.approx(trust * np.std(by_clicks), rel=1e-4)


def test_more_trust_than_asked_for_is_left_to_a_logged_order_that_explains_the_clicks() -> None:
    learned, logged_order = [by_feature(1), by_feature(1)], by_feature(0)
    asked, none = (weigh([learned], [logged_order] * 2, trust, clicked_by(0, 0), PARTS, 0) for trust in (0.1, 0.0))
    assert dict(asked)[logged_order] == dict(none)[logged_order] == pytest.approx(2.0, rel=0.01)


@pytest.mark.parametrize(
    ("clicks_per_query", "step", "expected"),
    [(2.0, 1_000, 10 / 2), (400.0, 100, 25 / 100), (400.0, 0, 25), (0.0, 1_000, 100)],
    ids=["few clicks", "few steps", "no step yet", "no click"],
)
def test_the_least_weight_of_the_logged_order_falls_with_clicks_and_steps(
    clicks_per_query: float, step: int, expected: float
) -> None:
    found = least_trust(evidence_with((clicks_per_query,) * 3), step, trust_steps=25.0, trust_clicks=10.0)
    assert found == pytest.approx(expected)


def evidence_with(clicks: tuple[float, float, float]) -> Evidence:
    """Three queries with so many clicks each."""
    evidence = Evidence.of_batch(random_batch(lengths=(4, 2, 3)))
    documents = evidence.clicked.shape[1]
    return replace(evidence, clicked=np.repeat(np.array(clicks)[:, None] / documents, documents, axis=1))


def test_clicks_on_the_query_that_everybody_asks_do_not_speak_for_the_others() -> None:
    found = least_trust(evidence_with((1e6, 4.0, 2.0)), 100, trust_steps=0.0, trust_clicks=10.0)
    assert found == pytest.approx(10 / ((1_000 + 4 + 2) / 3))
