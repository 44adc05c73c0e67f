import numpy as np
import pytest

from cuolr.data.normalise import Normaliser
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.counts import ClickCounts
from cuolr.off_policy.assess import logging_policy_member, logging_policy_share, overlap_with_log
from cuolr.policies.ensemble_policy import EnsemblePolicy
from cuolr.policies.linear_policy import LinearPolicy
from cuolr.types import Candidates, FeatureColumn, FeatureRecipe
from tests.small_log import small_log

LOG = small_log(rows=300)
NORMALISER = Normaliser.fit("min-max", LOG.candidates)


def by_feature(number: int) -> LinearPolicy:
    weights = np.zeros(4, np.float32)
    weights[number] = 1.0
    return LinearPolicy(weights, NORMALISER)


def test_overlap_is_counted_document_by_document() -> None:
    policy, queries = by_feature(0), np.unique(LOG.query).astype(np.int64)
    ranking = policy.rank(LOG.candidates, 3)
    shares = []
    for query in queries:
        lists = LOG.ranking[LOG.query == query]
        shares += [(lists == index).any(axis=1).mean() for index in ranking[query] if index >= 0]
    never_shown, overlap = overlap_with_log(policy, ClickCounts.of(LOG).lists, queries, 3)
    assert never_shown == pytest.approx(np.mean([share == 0 for share in shares]))
    assert overlap == pytest.approx(np.mean(shares))


def test_a_variant_counts_as_shown_if_its_document_was() -> None:
    recipe = FeatureRecipe((FeatureColumn("price"),), impression=("price",))
    ids = np.array(["a#000000000000", "a#111111111111", "b"])
    prices = np.array([[1.0], [3.0], [2.0]], np.float32)
    candidates = Candidates(prices, np.array([0, 3]), np.array(["q"]), ids, recipe=recipe)
    ranking = np.array([[0], [0], [1], [0]])  # a four times, at two prices; b never
    log = ClickLog(candidates, np.zeros(4, np.int32), ranking, np.zeros((4, 1), np.uint8), np.ones(4, np.int64))
    policy = LinearPolicy(np.ones(1, np.float32), Normaliser.fit("min-max", candidates))
    assert policy.rank(candidates, 3).tolist() == [[1, 2, 0]]
    never_shown, overlap = overlap_with_log(policy, log, np.array([0]), 3)
    assert never_shown == pytest.approx(1 / 3)
    assert overlap == pytest.approx((4 / 4 + 0 + 4 / 4) / 3)


def test_the_share_of_the_logging_policy_is_that_of_its_standard_deviation() -> None:
    first, second = by_feature(0), by_feature(1)
    spread = [policy.score(LOG.candidates).std() for policy in (first, second)]
    ensemble = EnsemblePolicy([first, second], [2.0, 0.5], logging_policy_members=[1])
    expected = 0.5 * spread[1] / (2.0 * spread[0] + 0.5 * spread[1])
    assert logging_policy_share(ensemble, LOG.candidates) == pytest.approx(expected, rel=1e-5)
    alone = EnsemblePolicy([first], [2.0], logging_policy_members=[0])
    assert logging_policy_share(alone, LOG.candidates) == pytest.approx(1.0)


@pytest.mark.parametrize("policy", [by_feature(0), EnsemblePolicy([by_feature(0)], [1.0])])
def test_a_policy_without_a_logging_policy_member_has_no_share(policy: LinearPolicy | EnsemblePolicy) -> None:
    assert logging_policy_share(policy, LOG.candidates) is None
    assert logging_policy_member(policy) is None


def test_the_logging_policy_members_rank_as_one_policy() -> None:
    ensemble = EnsemblePolicy([by_feature(0), by_feature(1), by_feature(1)], [2.0, 0.1, 0.1], [1, 2])
    member = logging_policy_member(ensemble)
    assert member is not None
    np.testing.assert_array_equal(member.rank(LOG.candidates, 5), by_feature(1).rank(LOG.candidates, 5))
