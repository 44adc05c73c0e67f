from dataclasses import replace

import numpy as np
import pytest

from cuolr.learners.factored.click_rates import ClickRates
from cuolr.learners.factored.stacking import stack
from cuolr.policies.logging_policy_model import ClonedRanker
from tests.learners.factored.rates import by_feature, random_rates

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
