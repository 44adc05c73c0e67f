import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuolr.clicks.click_model import click_model, relevance_of
from cuolr.logs.clicklog import ClickLog
from cuolr.off_policy.random_lists import matched_values, order_by_policy, order_by_score
from cuolr.policies.policy import ScoringPolicy
from cuolr.supervised.ranksvm import fit_ranksvm
from cuolr.types import Candidates, Doubles, Floats
from tests.data.small_data import candidates_of, log_of
from tests.experiments.real_log import real_log
from tests.off_policy.policies import NeverSaved


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
