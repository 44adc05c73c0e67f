import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cuolr.clicks.click_model import click_model, relevance_of
from cuolr.clicks.simulate import simulate
from cuolr.data.normalise import Normaliser
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.counts import ClickCounts
from cuolr.networks.encoder import build_encoder
from cuolr.networks.layers import PairNetwork
from cuolr.off_policy.random_lists import matched_values, model_order, order_by_policy, order_by_score
from cuolr.policies.linear_policy import LinearPolicy
from cuolr.policies.policy import RankingPolicy, ScoringPolicy
from cuolr.policies.random_policy import UniformLogger
from cuolr.policies.sequential_policy import SequentialPolicy
from cuolr.supervised.ranksvm import fit_ranksvm
from cuolr.types import Candidates, Doubles, Floats
from tests.data.small_data import candidates_of, log_of
from tests.experiments.small import real_log
from tests.off_policy.policies import BETTER, TRAIN, NeverSaved, OneAfterTheOther, cut
from tests.small_log import small_log


class Constant(NeverSaved, ScoringPolicy):
    """All documents are alike."""

    def score(self, candidates: Candidates) -> Floats:
        return np.zeros(candidates.n_documents, np.float32)


def all_orders(n: int) -> ClickLog:
    """Each order of the n documents of a query once."""
    orders = [list(order) for order in itertools.permutations(range(n))]
    return log_of(candidates_of(n), [0] * len(orders), orders, [[0] * n] * len(orders))


def expected_clicks(lists: ClickLog, table: Doubles) -> Doubles:
    """[M, K] from table[d, k], the clicks on document d at position k."""
    return table[lists.ranking, np.arange(lists.k)]


@given(n=st.integers(1, 5), seed=st.integers(0, 2**32))
def test_over_all_orders_the_mean_is_what_the_ranking_would_earn(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    lists, table, target = all_orders(n), rng.random((n, n)), rng.permutation(n)
    scores = -np.argsort(target)[lists.ranking].astype(np.float64)  # the target's order
    values = matched_values(order_by_score(scores, lists), lists, expected_clicks(lists, table))
    assert values.mean() == pytest.approx(table[target, np.arange(n)].sum())


def test_a_worked_session() -> None:
    lists = log_of(candidates_of(3), [0], [[2, 0, 1]], [[1, 0, 1]])
    scores = np.array([[0.1, 0.9, 0.5]])  # of documents 2, 0, 1: the ranking is 0, 1, 2
    assert order_by_score(scores, lists).tolist() == [[1, 2, 0]]
    assert matched_values(order_by_score(scores, lists), lists, lists.clicks).tolist() == [0]
    # Document 2 first, then 1, then 0: only 2 stands where it is put, and it was clicked.
    assert matched_values(order_by_score(np.array([[0.9, 0.1, 0.5]]), lists), lists, lists.clicks).tolist() == [3 * 1]


def test_documents_of_equal_score_are_not_taken_in_the_order_of_the_list() -> None:
    lists = all_orders(3)
    clicks = np.ones(lists.ranking.shape)
    for order in (order_by_policy(Constant(), lists), order_by_score(np.zeros(lists.ranking.shape), lists)):
        # In one of six lists all three stand where they are put, in three of six one does.
        assert sorted(matched_values(order, lists, clicks).tolist()) == [0, 0, 3, 3, 3, 9]


def test_short_lists_weigh_by_their_own_length() -> None:
    lists = log_of(candidates_of(3), [0, 0], [[0, 1, -1], [0, 1, 2]], [[1, 1, 0], [1, 0, 0]])
    order = order_by_score(np.broadcast_to([3.0, 2.0, 1.0], (2, 3)), lists)
    assert matched_values(order, lists, lists.clicks).tolist() == [2 * 2, 3 * 1]


@pytest.mark.parametrize("model", ["pbm", "dcm"])
def test_the_estimate_is_what_the_click_model_says(model: str) -> None:
    log, shown, production = real_log(queries=40, sessions=30_000, model=model)
    assert log.randomised is not None
    judge = log.select(np.flatnonzero(log.randomised))
    better = fit_ranksvm(shown, 1.0, 1)
    for policy in (production, better):
        values = matched_values(order_by_policy(policy, judge), judge, judge.clicks)
        ranking = policy.rank(shown.candidates, judge.k)
        rows = np.where(ranking >= 0, shown.candidates.offsets[:-1, None] + ranking, 0)
        relevance = relevance_of(shown.relevance[rows], shown.max_grade)
        truth = click_model(model).click_probability(relevance, ranking >= 0).sum(axis=1)[judge.query].mean()
        error = values.std() / np.sqrt(len(values))
        # Under DCM a click depends on those above, too; with few clicks it hardly matters.
        assert abs(values.mean() - truth) < 4 * error + (0.03 * truth if model == "dcm" else 0)


def test_a_policy_that_ranks_lists_is_applied_to_each_list_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    log = simulate(TRAIN, UniformLogger(), click_model("pbm"), 1_500, seed=1)
    lists = ClickCounts.of(cut(log, np.random.default_rng(1).integers(1, 11, len(log)))).lists
    monkeypatch.setattr("cuolr.off_policy.random_lists.LISTS_AT_A_TIME", 64)
    queries, positions = np.unique(lists.query).astype(np.int64), np.argsort(~lists.where, axis=1, kind="stable")
    by_list, by_score = (model_order(p, lists, queries, positions) for p in (OneAfterTheOther(BETTER), BETTER))
    where = np.take_along_axis(lists.where, positions, axis=1)
    np.testing.assert_array_equal(by_list[where], by_score[where])


def test_the_order_of_a_list_with_a_gap_fills_the_positions_that_it_has() -> None:
    log = small_log(rows=60, k=3)
    ranking = np.insert(log.ranking, 1, -1, axis=1)
    log = replace(log, ranking=ranking, clicks=(ranking >= 0).astype(np.uint8))
    policy = LinearPolicy(np.array([1.0, 0, 0, 0], np.float32), Normaliser.fit("min-max", log.candidates))
    positions = np.argsort(~log.where, axis=1, kind="stable")
    order = model_order(policy, log, np.unique(log.query).astype(np.int64), positions)
    assert (np.take_along_axis(log.where, order, axis=1) == np.take_along_axis(log.where, positions, axis=1)).all()


@pytest.mark.parametrize("sequential", [False, True])
def test_features_are_scaled_with_all_documents_of_a_query_not_with_those_of_a_list(sequential: bool) -> None:
    """The shown ones have 0 and 1 of 10, and 5 and 0 of 5: by x1 + x2 / 2 the first wins."""
    features = np.array([[0, 5], [1, 0], [10, 0]], np.float32)
    candidates = Candidates(features, np.array([0, 3]), np.array(["q"]))
    ranking = np.array([[1, 0]], np.int32)
    lists = ClickLog(candidates, np.zeros(1, np.int32), ranking, np.zeros((1, 2), np.uint8), np.ones(1, np.int64))
    scaling = Normaliser.fit("query-min-max", candidates)
    weights = np.array([1.0, 0.5], np.float32)
    policy: RankingPolicy = LinearPolicy(weights, scaling)
    if sequential:
        encoder = build_encoder("position", {}, 2, k=2)
        policy = SequentialPolicy(encoder, _ByWeights(weights, encoder.n_states), scaling)
    assert policy.rank(candidates, 3).tolist() == [[2, 0, 1]]
    assert model_order(policy, lists, np.array([0]), np.array([[0, 1]])).tolist() == [[1, 0]]


class _ByWeights(PairNetwork):
    """Scores a document by a weighted sum of its features, whatever the state."""

    def __init__(self, weights: Floats, n_states: int) -> None:
        super().__init__(n_states, len(weights), (4, 4))
        self.by_feature = torch.from_numpy(weights)

    def project_documents(self, documents: torch.Tensor) -> torch.Tensor:
        return documents @ self.by_feature[:, None]

    def project_states(self, states: torch.Tensor) -> torch.Tensor:
        return torch.zeros(*states.shape[:-1], 1)

    def score(self, states: torch.Tensor, documents: torch.Tensor) -> torch.Tensor:
        return (states + documents).squeeze(-1)
