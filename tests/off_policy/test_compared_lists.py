"""Lists to compare, samples of them, the weights of their positions, and what a log says about them."""

from dataclasses import replace

import numpy as np
import pytest

from cuolr.clicks.click_model import click_model
from cuolr.clicks.simulate import simulate
from cuolr.errors import InputError
from cuolr.logs.clicklog import ClickLog
from cuolr.off_policy.assess import assess
from cuolr.off_policy.compared_lists import ComparedLists, CountedLists
from cuolr.off_policy.position_discount import Discount, discount_weights, weights_in_lists
from cuolr.off_policy.support import ShownLists, Support, support_of
from cuolr.off_policy.users.fitted_users import UnbiasedRates
from cuolr.policies.plackett_luce import StochasticLogger
from cuolr.types import Doubles, Ints
from tests.off_policy.policies import BETTER, LOGGER, TRAIN

LISTS = CountedLists(np.array([0, 0, 0, 1]), np.array([[0, 1], [1, 0], [0, 1], [2, -1]]), np.array([1.0, 2, 3, 4]))


class AllClick:
    """Users who click on everything."""

    rates = UnbiasedRates(np.ones(10_000), np.ones(10_000))

    def clicks(self, documents: Ints, attractiveness: Doubles | None = None) -> Doubles:
        return (documents >= 0).astype(np.float64)


def compared(target: CountedLists, baseline: CountedLists, queries: int) -> ComparedLists:
    ones = np.ones(10_000)
    of_pair = np.zeros(10_000, np.int64)
    return ComparedLists(target, baseline, baseline, queries, np.ones(queries), np.ones(queries), ones, ones, of_pair)


def test_a_list_of_several_rows_is_one_with_their_sessions() -> None:
    found = LISTS.distinct()
    rows = {(q, *docs): n for q, docs, n in zip(found.query, found.documents.tolist(), found.count, strict=True)}
    assert rows == {(0, 0, 1): 4, (0, 1, 0): 2, (1, 2, -1): 4}


def test_a_change_is_the_expected_reward_of_one_side_minus_the_other() -> None:
    shorter = replace(LISTS, documents=np.where(np.arange(2) < 1, LISTS.documents, -1))
    assert compared(LISTS, shorter, 2).total_change(AllClick()) == 1 + 2 + 3


def test_a_sample_has_the_same_queries_on_both_sides_and_stands_for_all_sessions() -> None:
    rng = np.random.default_rng(0)
    query = np.repeat(np.arange(200), 5)
    several = CountedLists(query, rng.permuted(np.tile(np.arange(4), (1_000, 1)), axis=1), rng.uniform(1, 9, 1_000))
    sessions = np.bincount(query, several.count).astype(np.float64)
    single = CountedLists(np.arange(200), np.tile(np.arange(4), (200, 1)), sessions)
    found = compared(single, several, 200).sample(100)
    assert set(found.target.query) == set(found.baseline.query)
    assert len(set(found.target.query)) == 20
    for side in (found.target, found.baseline):
        assert side.total == pytest.approx(several.total)


def test_the_lists_of_a_single_query_are_sampled_as_well() -> None:
    many = CountedLists(np.zeros(1_000, np.int64), np.arange(4_000).reshape(-1, 4), np.ones(1_000))
    found = compared(many, many, 1).sample(50)
    assert len(found.baseline.query) == 100
    assert found.baseline.total == pytest.approx(1_000)


def support(logged: list[list[int]], target: list[int], propensity: Doubles, query: list[int] | None = None) -> Support:
    """Of one query with one session per list, unless queries are given; the target policy has the same list for all."""
    of_list = np.zeros(len(logged), np.int64) if query is None else np.array(query)
    queries, sessions = np.unique(of_list, return_counts=True)
    shown = ShownLists(of_list, np.array(logged), np.ones(len(logged)))
    lists = ShownLists(queries, np.array([target] * len(queries)), sessions.astype(np.float64))
    return support_of(shown, lists, propensity, propensity)


def test_a_list_that_was_shown_is_supported() -> None:
    found = support([[0, 1], [1, 0]], [1, 0], np.full((2, 2), 0.5))
    assert found.never_shown == 0
    for level in ("position", "above", "list"):
        assert found.unsupported[level].tolist() == [0, 0]
        assert found.unobserved[level].tolist() == [0, 0]


def test_a_document_that_was_never_shown_is_not_supported() -> None:
    found = support([[0, 1], [1, 0]], [0, 2], np.full((2, 2), 0.3))
    assert found.never_shown == 1 / 2
    assert found.unsupported["position"].tolist() == [0, 1]
    assert found.unsupported["above"].tolist() == [0, 1]
    assert found.unsupported["list"].tolist() == [1, 1]


def test_nothing_else_is_supported_where_the_log_always_shows_the_same() -> None:
    found = support([[0, 1, 2]], [0, 2, 1], np.ones((1, 3)))
    assert found.never_shown == 0
    assert found.unsupported["position"].tolist() == [0, 1, 1]
    assert found.unsupported["above"].tolist() == [0, 1, 1]
    assert found.unsupported["list"].tolist() == [1, 1, 1]


def test_an_order_that_the_log_could_have_shown_is_only_unobserved() -> None:
    found = support([[0, 1, 2], [1, 0, 2]], [0, 2, 1], np.full((2, 3), 0.4))
    assert found.unsupported["list"].tolist() == [0, 0, 0]
    assert found.unobserved["position"].tolist() == [0, 1, 1]
    assert found.unobserved["above"].tolist() == [0, 1, 1]
    assert found.unobserved["list"].tolist() == [1, 1, 1]


def test_a_document_can_be_unobserved_after_those_above_and_observed_at_its_position() -> None:
    found = support([[0, 1, 2], [1, 2, 0]], [0, 2, 1], np.full((2, 3), 0.4))
    assert found.unobserved["position"].tolist() == [0, 0, 1]
    assert found.unobserved["above"].tolist() == [0, 1, 1]


def test_queries_count_by_their_sessions_and_only_positions_that_they_show() -> None:
    found = support([[0, 1], [0, 1], [0, 1], [1, -1]], [2, 1], np.full((4, 2), 0.5), query=[0, 0, 0, 1])
    assert found.unobserved["position"].tolist() == [1, 0]
    assert found.unobserved["above"].tolist() == [1, 3 / 4]
    assert found.never_shown == 4 / 7  # of 4 documents at position 1 and 3 at position 2


def test_documents_of_another_query_do_not_count() -> None:
    found = support([[0, 1], [1, 0]], [0, 1], np.full((2, 2), 0.5), query=[0, 1])
    assert found.unobserved["list"].tolist() == [1 / 2, 1 / 2]


DRAWN = StochasticLogger(LOGGER, float(np.std(LOGGER.score(TRAIN.candidates))))


def test_weights_by_hand() -> None:
    assert discount_weights(None, 2).tolist() == [1, 1]
    assert discount_weights("dcg", 4) == pytest.approx([1, 1 / np.log2(3), 1 / 2, 1 / np.log2(5)])
    assert discount_weights((1, 0.5, 0.25), 2).tolist() == [1, 0.5]
    shown = np.array([[True, True, True, False], [False, True, False, True]])
    assert weights_in_lists(shown, np.array([1, 0.5])).tolist() == [[1, 0.5, 0, 0], [0, 1, 0, 0.5]]


@pytest.mark.parametrize("discount", ["ndcg", (1.0,), (1.0, -1.0), (0.0, 1.0), (1.0, np.nan)])
def test_what_is_no_discount_is_refused(discount: Discount) -> None:
    with pytest.raises(InputError, match="discount: expected 'dcg' or "):
        discount_weights(discount, 2)


@pytest.mark.thorough
def test_a_discount_that_counts_the_first_position_alone_is_a_list_of_one() -> None:
    log = simulate(TRAIN, DRAWN, click_model("pbm"), 12_000, k=3, seed=1)
    first, one = assess(BETTER, log, discount=(1, 0, 0)), assess(BETTER, log, k=1)
    for name in ("pbm", "reward-interaction-ips", "item-position-ips"):
        of_first, of_one = (next(e for e in found.estimates if e.estimator == name) for found in (first, one))
        assert of_first.gain == pytest.approx(of_one.gain)
        assert of_first.interval == pytest.approx(of_one.interval)
    assert first.sessions_for_test == one.sessions_for_test
    assert "discounted clicks" in first.reason
    assert "discounted clicks" not in one.reason


@pytest.mark.thorough
@pytest.mark.parametrize("model", ["pbm", "dcm"])
def test_the_interval_has_the_true_discounted_gain(model: str) -> None:
    weights = discount_weights("dcg", 5)

    def discounted(log: ClickLog) -> float:
        return float((log.clicks * weights).sum(axis=1).mean())

    log = simulate(TRAIN, DRAWN, click_model(model), 20_000, k=5, seed=1)
    # The same queries in the same sessions.
    ranked = simulate(TRAIN, BETTER, click_model(model), 400_000, k=5, seed=1)
    truth = discounted(ranked) / discounted(simulate(TRAIN, DRAWN, click_model(model), 400_000, k=5, seed=1)) - 1
    found = assess(BETTER, log, discount="dcg")
    plain = assess(BETTER, log)
    assert found.interval[0] - 0.005 < truth < found.interval[1] + 0.005
    assert found.gain > plain.gain  # a better order counts more where the top does
