"""Planned lists, with a scorer of one feature."""

import numpy as np
import pytest
from scipy.special import expit

from cuolr.data.normalise import UNSCALED
from cuolr.policies.linear_policy import LinearPolicy
from cuolr.policies.planned_policy import BrowsingUsers, PlannedPolicy
from cuolr.types import Candidates, Doubles, Ints

K = 4
# The published user browsing model looks more often at what follows a click directly.
TABLE = np.array(
    [
        [1.0, np.nan, np.nan, np.nan, np.nan],
        [1.0, 0.98, np.nan, np.nan, np.nan],
        [0.95, 0.62, 1.0, np.nan, np.nan],
        [0.82, 0.42, 0.77, 1.0, np.nan],
    ]
)


def candidates_of(sizes: list[int]) -> Candidates:
    features = np.random.default_rng(3).standard_normal((sum(sizes), 1)).astype(np.float32)
    return Candidates(features, np.cumsum([0, *sizes]), np.arange(len(sizes)).astype(np.str_))


def policy_of(min_gain: float = 0.0, table: Doubles = TABLE, slope: float = 2.0) -> PlannedPolicy:
    scorer = LinearPolicy(np.ones(1, np.float32), UNSCALED)
    return PlannedPolicy(scorer, BrowsingUsers(table), -1.0, slope, min_gain)


def expected(policy: PlannedPolicy, candidates: Candidates, ranking: Ints) -> Doubles:
    where = ranking >= 0
    rows = candidates.offsets[:-1, None] + np.maximum(ranking, 0)
    alpha = expit(policy.intercept + policy.slope * candidates.features[rows, 0].astype(np.float64))
    return policy.users.expected_clicks(alpha, where)


def test_planned_lists_have_more_expected_clicks_than_sorted_ones_and_never_fewer() -> None:
    candidates, policy = candidates_of([9] * 30), policy_of()
    planned, plain = policy.rank(candidates, K), policy.scorer.rank(candidates, K)
    gain = expected(policy, candidates, planned) - expected(policy, candidates, plain)
    assert (gain >= 0).all()
    assert (gain > 0.001).mean() > 0.5


def test_every_document_is_shown_once_and_short_queries_end_with_nothing() -> None:
    candidates = candidates_of([1, 2, 3, 30])
    ranking = policy_of().rank(candidates, 6)
    for row, size in zip(ranking.tolist(), [1, 2, 3, 30], strict=True):
        shown = [index for index in row if index >= 0]
        assert len(shown) == len(set(shown)) == min(size, 6)
        assert row == shown + [-1] * (6 - len(shown))


def test_a_list_changes_only_for_the_least_gain() -> None:
    candidates, plain = candidates_of([9] * 30), policy_of().scorer.rank(candidates_of([9] * 30), K)
    assert policy_of(min_gain=10).rank(candidates, K).tolist() == plain.tolist()
    demanding = policy_of(min_gain=0.02)
    changed = (demanding.rank(candidates, K) != plain).any(axis=1)
    gains = expected(demanding, candidates, demanding.rank(candidates, K)) / expected(demanding, candidates, plain) - 1
    assert changed.any()
    assert (gains[changed] >= 0.02).all()


def test_positions_that_the_log_does_not_have_are_filled_by_score() -> None:
    candidates, policy = candidates_of([30] * 5), policy_of()
    ranking = policy.rank(candidates, 8)
    assert ranking[:, :K].tolist() == policy.rank(candidates, K).tolist()
    for row, order in zip(ranking.tolist(), policy.scorer.rank(candidates, 30).tolist(), strict=True):
        assert row[K:] == [index for index in order if index not in row[:K]][: 8 - K]


@pytest.mark.parametrize("slope", [0.0, 2.0])
def test_scores_decide_where_sorting_is_optimal_or_attractiveness_is_not_known(slope: float) -> None:
    table = TABLE if slope == 0 else np.array([1.0, 0.5, 0.3, 0.2])[:, None] * np.ones(K + 1)
    policy, candidates = policy_of(table=table, slope=slope), candidates_of([9] * 20)
    assert policy.rank(candidates, K).tolist() == policy.scorer.rank(candidates, K).tolist()
