"""What every registered ranking policy must do; one without an example here fails the first test."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cuolr.data.normalise import Normaliser
from cuolr.errors import InputError
from cuolr.networks.encoder import build_encoder
from cuolr.networks.layers import DocumentNetwork, PairNetwork, seeded
from cuolr.policies.browsing_users import LastClickUsers
from cuolr.policies.linear_policy import LinearPolicy
from cuolr.policies.model_folder import load_policy, save_policy
from cuolr.policies.network_policy import NetworkPolicy
from cuolr.policies.planned_policy import PlannedPolicy
from cuolr.policies.policy import POLICIES, RankingInParts, RankingPolicy
from cuolr.policies.random_policy import RandomPolicy
from cuolr.policies.sequential_policy import SequentialPolicy
from cuolr.policies.trees_policy import TreesPolicy, grow_ranking_trees
from cuolr.types import Candidates
from tests.small_log import small_candidates, with_missing_values

CANDIDATES = small_candidates(queries=9, n_features=4, least=1, most=8)
NORMALISER = Normaliser.fit("min-max", CANDIDATES)
K = 5


def linear() -> LinearPolicy:
    return LinearPolicy(np.array([1.0, -0.5, 0.25, 2.0], np.float32), NORMALISER)


def network() -> NetworkPolicy:
    with seeded(1):
        return NetworkPolicy(DocumentNetwork(4, (8,)), NORMALISER)


def trees() -> TreesPolicy:
    scaled = NORMALISER.apply(CANDIDATES)
    grades = (scaled.features[:, 0] > 0).astype(np.int8)
    parameters = {"num_threads": 1, "min_data_in_leaf": 2, "num_leaves": 3}
    return TreesPolicy(grow_ranking_trees(scaled.features, grades, scaled.sizes, parameters, 3), 1, NORMALISER)


def sequential() -> SequentialPolicy:
    with seeded(1):
        encoder = build_encoder("position+previous", {}, 4, K)
        return SequentialPolicy(encoder, PairNetwork(encoder.n_states, 4, (8, 8)), NORMALISER)


def ensemble() -> RankingPolicy:
    return POLICIES.get("ensemble")([linear(), network()], [0.5, 2.0])  # type: ignore[call-arg]


def planned() -> PlannedPolicy:
    after_click = np.array([[1.0, 1.0, 1.0, 1.0], [0.9, 0.5, 1.0, 1.0], [0.8, 0.4, 1.0, 1.0]])
    return PlannedPolicy(linear(), LastClickUsers(after_click), -0.5, 0.7, 0.0)


EXAMPLES: dict[str, Callable[[], RankingPolicy]] = {
    "ranksvm": linear,
    "network": network,
    "trees": trees,
    "sequential": sequential,
    "ensemble": ensemble,
    "planned": planned,
    "random": lambda: RandomPolicy(3),
}
every_policy = pytest.mark.parametrize("name", POLICIES.names())


@every_policy
def test_there_is_an_example_of_every_policy(name: str) -> None:
    assert name in EXAMPLES
    assert POLICIES.name_of(type(EXAMPLES[name]())) == name


@every_policy
def test_save_and_load_give_the_same_ranking(name: str, tmp_path: Path) -> None:
    policy = EXAMPLES[name]()
    save_policy(policy, tmp_path / "model")
    loaded = load_policy(tmp_path / "model")
    assert loaded.settings() == policy.settings()
    assert loaded.arrays().keys() == policy.arrays().keys()
    np.testing.assert_array_equal(loaded.rank(CANDIDATES, K), policy.rank(CANDIDATES, K))


@every_policy
def test_each_candidate_is_ranked_once(name: str) -> None:
    ranking = EXAMPLES[name]().rank(CANDIDATES, 10)
    for row, size in zip(ranking.tolist(), CANDIDATES.sizes.tolist(), strict=True):
        assert sorted(row[:size]) == list(range(size))
        assert row[size:] == [-1] * (10 - size)


@every_policy
def test_a_shorter_list_is_the_beginning_of_a_longer_one(name: str) -> None:
    policy = EXAMPLES[name]()
    np.testing.assert_array_equal(policy.rank(CANDIDATES, 3), policy.rank(CANDIDATES, 8)[:, :3])


@every_policy
def test_a_query_is_ranked_the_same_whatever_is_ranked_with_it(name: str) -> None:
    policy, together = EXAMPLES[name](), EXAMPLES[name]().rank(CANDIDATES, K)
    for query in range(CANDIDATES.n_queries):
        alone = policy.rank(CANDIDATES.select(np.array([query])), K)
        np.testing.assert_array_equal(alone[0], together[query])


@every_policy
def test_no_query_gives_no_ranking(name: str) -> None:
    nothing = CANDIDATES.select(np.empty(0, np.int64))
    assert EXAMPLES[name]().rank(nothing, K).shape == (0, K)


@every_policy
def test_other_features_are_refused(name: str) -> None:
    policy = EXAMPLES[name]()
    wider = replace(CANDIDATES, features=np.pad(CANDIDATES.features, ((0, 0), (0, 1))))
    if policy.n_features is None:
        assert policy.rank(wider, K).shape == (CANDIDATES.n_queries, K)
    else:
        with pytest.raises(InputError, match=r"4 features.* found 5"):
            policy.rank(wider, K)


@every_policy
def test_a_length_below_one_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="k: expected a whole number >= 1, found 0"):
        EXAMPLES[name]().rank(CANDIDATES, 0)


@every_policy
def test_documents_of_equal_features_keep_their_order(name: str) -> None:
    if name == "random":
        pytest.skip("ranks by chance")
    same = Candidates(np.ones((5, 4), np.float32), np.array([0, 5]), np.array(["q"]))
    assert EXAMPLES[name]().rank(same, 5).tolist() == [[0, 1, 2, 3, 4]]


@every_policy
def test_values_that_are_missing_at_ranking_time_only_are_the_median(name: str) -> None:
    if name == "random":
        pytest.skip("does not look at features")
    policy, missing = EXAMPLES[name](), with_missing_values(CANDIDATES)
    filled = np.where(np.isnan(missing.features), np.median(CANDIDATES.features, axis=0), missing.features)
    expected = policy.rank(replace(CANDIDATES, features=filled.astype(np.float32)), K)
    np.testing.assert_array_equal(policy.rank(missing, K), expected)


@pytest.mark.parametrize("queries", [1, 4, 9])
def test_the_parts_together_are_the_ranking(queries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cuolr.policies.policy.QUERIES_AT_A_TIME", 4)
    candidates, heard = small_candidates(queries), list[int]()
    ranking = RankingInParts(RandomPolicy(2), heard.append).rank(candidates, 5)
    np.testing.assert_array_equal(ranking, RandomPolicy(2).rank(candidates, 5))
    assert sum(heard) == queries
    assert max(heard) <= 4
