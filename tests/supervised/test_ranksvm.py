from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuolr.data import normalise
from cuolr.data.normalise import Normaliser
from cuolr.errors import InputError
from cuolr.evaluation.measures import mean_over_queries
from cuolr.policies import linear_policy as linear
from cuolr.policies.linear_policy import LinearPolicy, draw_pairs
from cuolr.policies.random_policy import RandomPolicy
from cuolr.supervised import ranksvm
from cuolr.supervised.ranksvm import fit_ranksvm
from cuolr.types import Candidates, Doubles, Floats, Ints, RankingDataset
from tests.evaluation.one_measure import measure_ranking
from tests.small_log import with_missing_values

Queries = list[list[int]]


def dataset_of(queries: Queries, features: int = 3, seed: int = 0) -> RankingDataset:
    """Random features, the first of which is a noisy copy of the grade."""
    grades = np.array([grade for query in queries for grade in query], np.int8)
    offsets = np.concatenate([[0], np.cumsum([len(query) for query in queries])]).astype(np.int64)
    values = np.random.default_rng(seed).standard_normal((len(grades), features)).astype(np.float32)
    values[:, 0] = values[:, 0] / 4 + grades
    names = np.array([str(i) for i in range(len(queries))])
    return RankingDataset(Candidates(values, offsets, names), grades, 4)


def random_queries(n: int, seed: int = 0) -> Queries:
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 3, rng.integers(2, 9)).tolist() for _ in range(n)]


def all_pairs(queries: Queries) -> list[set[tuple[int, int]]]:
    """The pairs of rows of each query, the better document first, by looking at each."""
    pairs, start = [], 0
    for query in queries:
        slots = range(len(query))
        pairs.append({(start + i, start + j) for i, j in product(slots, slots) if query[i] > query[j]})
        start += len(query)
    return pairs


@given(st.lists(st.lists(st.integers(0, 4), max_size=8), max_size=6), st.integers(1, 40), st.integers(0, 99))
def test_pairs_are_drawn_without_repeats_and_all_of_them_where_they_are_few(
    queries: Queries, pairs_per_query: int, seed: int
) -> None:
    dataset = dataset_of(queries)
    better, worse = draw_pairs(
        dataset.relevance, dataset.candidates.offsets, pairs_per_query, np.random.default_rng(seed)
    )
    drawn = list(zip(better.tolist(), worse.tolist(), strict=True))
    assert len(set(drawn)) == len(drawn)
    for available in all_pairs(queries):
        taken = available & set(drawn)
        assert len(taken) == min(len(available), pairs_per_query)
        drawn = [pair for pair in drawn if pair not in taken]
    assert not drawn


def test_every_pair_can_be_drawn() -> None:
    queries = [[0, 1, 2, 1, 0]]
    dataset, rng = dataset_of(queries), np.random.default_rng(0)
    seen: set[tuple[int, int]] = set()
    for _ in range(100):
        better, worse = draw_pairs(dataset.relevance, dataset.candidates.offsets, 3, rng)
        seen |= set(zip(better.tolist(), worse.tolist(), strict=True))
    assert seen == all_pairs(queries)[0]


def test_a_separable_data_set_is_ranked_perfectly() -> None:
    train, test = dataset_of(random_queries(100)), dataset_of(random_queries(50, seed=1), seed=1)
    for dataset in (train, test):
        dataset.candidates.features[:, 0] = dataset.relevance
    policy = fit_ranksvm(train, fraction=1.0, C=1000)
    values = measure_ranking(test, policy.rank(test.candidates, 10), "ndcg@10")
    assert mean_over_queries(values) == pytest.approx(1.0)


@pytest.mark.parametrize("fraction", [0.05, 1.0])
def test_it_beats_a_random_order(fraction: float) -> None:
    train, test = dataset_of(random_queries(200)), dataset_of(random_queries(200, seed=1), seed=1)
    for seed in range(3):
        ranking = fit_ranksvm(train, fraction, seed).rank(test.candidates, 10)
        by_chance = RandomPolicy(seed).rank(test.candidates, 10)
        gain = measure_ranking(test, ranking, "ndcg@10") - measure_ranking(test, by_chance, "ndcg@10")
        assert mean_over_queries(gain) > 0.1


def test_only_the_drawn_fraction_of_the_labels_is_read() -> None:
    dataset = dataset_of(random_queries(100))
    policy = fit_ranksvm(dataset, fraction=0.05, seed=3)
    unused = 0
    for query in range(100):
        rows = dataset.candidates.rows_of(np.array([query]))
        relevance = dataset.relevance.copy()
        relevance[rows] = relevance[rows][::-1] if len(set(relevance[rows])) == 1 else 2 - relevance[rows]
        changed = RankingDataset(dataset.candidates, relevance, dataset.max_grade)
        unused += bool((fit_ranksvm(changed, fraction=0.05, seed=3).weights == policy.weights).all())
    assert 100 - 5 <= unused < 100


def test_the_same_seed_gives_the_same_weights_and_another_seed_others() -> None:
    dataset = dataset_of(random_queries(100))
    first, same, other = (fit_ranksvm(dataset, 0.1, seed).weights for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, same)
    assert (first != other).any()


def test_queries_without_a_pair_are_passed_over_until_one_has_it() -> None:
    queries = [[1, 1, 1]] * 99 + [[0, 1]]
    dataset = dataset_of(queries)
    for seed in range(5):
        policy = fit_ranksvm(dataset, fraction=0.0001, seed=seed)
        assert np.isfinite(policy.weights).all()
        assert policy.weights[0] > 0


def test_a_data_set_without_a_pair_is_refused() -> None:
    with pytest.raises(InputError, match="none of the 3 training queries has documents of two different grades"):
        fit_ranksvm(dataset_of([[1, 1], [], [0]]), fraction=1.0)


@pytest.mark.parametrize("fraction", [0.0, -0.1, 1.5, float("nan")])
def test_a_fraction_outside_0_to_1_is_refused(fraction: float) -> None:
    with pytest.raises(InputError, match="fraction: expected above 0 and at most 1"):
        fit_ranksvm(dataset_of([[0, 1]]), fraction)


def test_the_number_of_pairs_is_bounded_by_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = dataset_of([[0] * 10 + [1] * 10] * 4)
    monkeypatch.setattr(ranksvm, "MAX_PAIR_VALUES", 4 * 3 * 7)
    sizes = []
    solve = linear.fit_pairs

    def solve_and_note_the_size(features: Floats, better: Ints, worse: Ints, C: float) -> Doubles:
        sizes.append((len(better), features.shape[1]))
        return solve(features, better, worse, C)

    monkeypatch.setattr(ranksvm, "fit_pairs", solve_and_note_the_size)
    fit_ranksvm(dataset, fraction=1.0)
    assert sizes == [(4 * 7, 3)]


@pytest.mark.parametrize("normalising", ["min-max", "log-min-max", "query-min-max", "none"])
def test_the_score_of_a_document_does_not_depend_on_the_queries_around_it(
    normalising: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = dataset_of(random_queries(60), features=37)
    policy = fit_ranksvm(dataset, 0.5, normalising=normalising)
    scores = policy.score(dataset.candidates)
    monkeypatch.setattr(normalise, "QUERIES_AT_A_TIME", 7)
    np.testing.assert_array_equal(policy.score(dataset.candidates), scores)
    some = np.array([41, 3, 3, 17])
    np.testing.assert_array_equal(
        policy.score(dataset.candidates.select(some)), scores[dataset.candidates.rows_of(some)]
    )


def test_the_score_is_the_weighted_sum_of_normalised_features() -> None:
    candidates = Candidates(np.array([[0.0, 2.0], [4.0, 6.0]], np.float32), np.array([0, 2]), np.array(["q"]))
    policy = LinearPolicy(np.array([2.0, 3.0], np.float32), Normaliser("min-max", np.zeros(2), np.array([4.0, 8.0])))
    assert policy.score(candidates).tolist() == [2 * -1 + 3 * -0.5, 2 * 1 + 3 * 0.5]


def test_documents_of_another_width_are_refused() -> None:
    policy = fit_ranksvm(dataset_of([[0, 1]]), 1.0, normalising="none")
    with pytest.raises(InputError, match="documents with 3 features, as in training, found 2"):
        policy.score(dataset_of([[0, 1]], features=2).candidates)


def test_missing_values_have_weights_of_their_own() -> None:
    dataset = dataset_of(random_queries(20), features=4)
    missing = replace(dataset, candidates=with_missing_values(dataset.candidates))
    policy = fit_ranksvm(missing, fraction=1.0)
    assert (len(policy.weights), policy.n_features) == (4 + 2, 4)
    assert np.isfinite(policy.score(missing.candidates)).all()
