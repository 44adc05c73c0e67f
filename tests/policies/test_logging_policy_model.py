from dataclasses import replace

import numpy as np
import pytest

from cuolr.data.normalise import Normaliser
from cuolr.logs.clicklog import ClickLog
from cuolr.policies.linear_policy import LinearPolicy, fit_pairs, fit_ranking_svm
from cuolr.policies.logging_policy_model import LoggingPolicyModel, agreement, clone_lambdamart, clone_linear
from cuolr.policies.policy import rank_by_score
from cuolr.policies.trees_policy import TreesPolicy
from cuolr.types import Candidates, Ints
from tests.small_log import small_candidates, small_log


def shown(candidates: Candidates, ranking: Ints) -> ClickLog:
    """One session for each query, without a click."""
    queries = np.arange(len(ranking), dtype=np.int32)
    return ClickLog(candidates, queries, ranking, np.zeros(ranking.shape, np.uint8), np.ones(len(ranking), np.int64))


def logged_by(weights: list[float], queries: int = 200, k: int = 4) -> ClickLog:
    """One session for each query, shown the order by a linear ranker."""
    candidates = small_candidates(queries, least=5, most=9)
    ranker = LinearPolicy(np.array(weights, np.float32), Normaliser.fit("min-max", candidates))
    return shown(candidates, ranker.rank(candidates, k))


def test_the_clone_ranks_as_the_logging_policy_did() -> None:
    log = logged_by([1.0, -2.0, 0.5, 0.0])
    learned = clone_linear(log, Normaliser.fit("min-max", log.candidates), seed=1)
    assert learned is not None
    same = learned.rank(log.candidates, 4) == log.ranking
    assert same[:, 0].mean() > 0.9
    assert same.mean() > 0.8


def test_clicks_are_not_used() -> None:
    log = logged_by([1.0, -2.0, 0.5, 0.0])
    normaliser = Normaliser.fit("min-max", log.candidates)
    clicked = replace(log, clicks=np.where(log.ranking == log.ranking.max(axis=1)[:, None], 1, 0).astype(np.uint8))
    first, second = clone_linear(log, normaliser, 1), clone_linear(clicked, normaliser, 1)
    assert first is not None
    assert second is not None
    np.testing.assert_array_equal(first.weights, second.weights)


def test_a_row_that_stands_for_many_sessions_counts_as_often() -> None:
    log = small_log(rows=30)
    aggregated = replace(log, clicks=log.clicks.astype(np.float64), aggregated=True)
    often = replace(aggregated, count=np.arange(1, 31))
    repeated = log.select(np.repeat(np.arange(30), np.arange(1, 31)))
    normaliser = Normaliser.fit("min-max", log.candidates)
    first, second = clone_linear(often, normaliser, 1), clone_linear(repeated, normaliser, 1)
    assert first is not None
    assert second is not None
    np.testing.assert_allclose(first.weights, second.weights, rtol=1e-6)


def test_there_is_no_clone_where_no_document_is_shown_above_another() -> None:
    candidates = small_candidates(5, least=1, most=1)
    log = shown(candidates, np.zeros((5, 1), np.int64))
    assert clone_linear(log, Normaliser.fit("min-max", candidates), 1) is None


def logged_by_a_product(queries: int = 150, k: int = 4) -> ClickLog:
    """Shown in the order of a product of two features, which no linear ranker reproduces."""
    candidates = small_candidates(queries, least=25, most=30)
    values = candidates.features - np.median(candidates.features, axis=0)
    return shown(candidates, rank_by_score(values[:, 0] * values[:, 1], candidates.offsets, k))


def test_a_linear_logging_policy_is_cloned_by_one_linear_ranker() -> None:
    log = logged_by([1.0, -2.0, 0.5, 0.0])
    model = LoggingPolicyModel.fit(log, Normaliser.fit("min-max", log.candidates), 1, folds=3)
    assert len(set(model.rankers)) == 1
    assert isinstance(model.rankers[0].ranker, LinearPolicy)
    assert model.fold is None


@pytest.mark.thorough
def test_another_logging_policy_is_cloned_by_lambdamart_fitted_without_each_fold() -> None:
    log = logged_by_a_product()
    normaliser = Normaliser.fit("min-max", log.candidates)
    model = LoggingPolicyModel.fit(log, normaliser, 1, folds=3)
    assert model.fold is not None
    linear = clone_linear(log, normaliser, 1)
    assert linear is not None
    for fold, clone in enumerate(model.rankers):
        new = np.flatnonzero(model.fold == fold)
        assert agreement(clone.ranker, log, new) > 0.6 > agreement(linear, log, new) + 0.2
        others = np.random.default_rng(1).permutation(np.unique(log.query))
        again = clone_lambdamart(log, others[model.fold[others] != fold], normaliser, 1 + fold)
        assert isinstance(clone.ranker, TreesPolicy)
        assert again.trees.lightgbm_text == clone.ranker.trees.lightgbm_text


def test_agreement_is_ndcg_by_how_high_documents_stood() -> None:
    """Two queries of 3 documents, lists of 2: heights 100, 50, 0 and 50, 0, 100. The ranker's order is 1, 3, 2."""
    features = np.array([[3.0], [1.0], [2.0], [3.0], [1.0], [2.0]], np.float32)
    candidates = Candidates(features, np.array([0, 3, 6]), np.array(["a", "b"]))
    log = ClickLog(
        candidates,
        np.array([0, 1], np.int32),
        np.array([[0, 1], [2, 0]], np.int32),
        np.zeros((2, 2)),
        np.array([5, 1]),
        aggregated=True,
    )
    ranker = LinearPolicy(np.ones(1, np.float32), Normaliser.fit("min-max", candidates))
    second = 1 / np.log2(3)
    first_query, second_query = 100 / (100 + 50 * second), (50 + 100 * second) / (100 + 50 * second)
    assert agreement(ranker, log, np.array([0, 1])) == pytest.approx((first_query + second_query) / 2)
    assert agreement(ranker, log, np.array([1])) == pytest.approx(second_query)


def test_scores_are_standardised_and_those_of_no_model_are_0() -> None:
    log = logged_by([1.0, -2.0, 0.5, 0.0])
    normaliser = Normaliser.fit("min-max", log.candidates)
    features = normaliser.apply(log.candidates).features
    model = LoggingPolicyModel.fit(log, normaliser, 1, folds=3)
    scores = model.scores([features])
    np.testing.assert_array_equal(model.scores([features[:7], features[7:]]), scores)
    assert scores.mean() == pytest.approx(0, abs=1e-9)
    assert scores.std() == pytest.approx(1)
    linear = model.rankers[0].ranker
    assert np.corrcoef(scores, linear.score_scaled(features))[0, 1] == pytest.approx(1)
    assert LoggingPolicyModel().scores([features]).tolist() == [0.0] * len(features)


@pytest.mark.parametrize("C", [1.0, 10_000.0])
def test_a_ranking_svm_by_documents_is_that_of_liblinear(C: float) -> None:
    rng = np.random.default_rng(1)
    features = rng.normal(size=(400, 6)).astype(np.float32)
    better, worse = rng.integers(0, 400, (2, 3_000))
    hidden = features @ np.array([1.0, -2, 0.5, 0, 0, 3], np.float32) + rng.normal(0, 0.5, 400)
    is_better = hidden[better] > hidden[worse]
    better, worse = np.where(is_better, better, worse), np.where(is_better, worse, better)
    by_pairs = fit_pairs(features, better, worse, C)
    np.testing.assert_allclose(fit_ranking_svm(features, better, worse, C), by_pairs, atol=1e-6 * abs(by_pairs).max())


def test_one_pair_is_enough_for_a_ranking_svm() -> None:
    """min ½w² + (1 − w)² is at w = 2/3."""
    weights = fit_ranking_svm(np.array([[1.0], [0.0]], np.float32), np.array([0]), np.array([1]), 1.0)
    np.testing.assert_allclose(weights, [2 / 3], atol=1e-4)
