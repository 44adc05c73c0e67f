from itertools import permutations
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import cuolr.policies.sequential_policy
from cuolr.data.normalise import Normaliser
from cuolr.networks.encoder import ENCODERS, build_encoder
from cuolr.networks.layers import PairNetwork, seeded
from cuolr.policies.sequential_policy import SequentialPolicy, batches_by_size, choose, likely
from cuolr.types import Candidates

N_FEATURES = 4


def policy(encoder: str = "attention", seed: int = 0, with_behaviour: bool = False, **options: Any) -> SequentialPolicy:
    """Networks whose choice depends on what is placed: their weights are far from small."""
    with seeded(seed):
        states = build_encoder(encoder, {"heads": 2} if encoder == "attention" else {}, N_FEATURES, k=6)
        scorer, behaviour = (PairNetwork(states.n_states, N_FEATURES, (16, 16)) for _ in range(2))
        for network in (scorer, behaviour):
            for parameter in network.parameters():
                torch.nn.init.normal_(parameter)
    normaliser = Normaliser("min-max", np.full(N_FEATURES, -2.0), np.full(N_FEATURES, 2.0))
    return SequentialPolicy(states, scorer, normaliser, behaviour if with_behaviour else None, **options)


def some_candidates(*sizes: int, seed: int = 1) -> Candidates:
    features = np.random.default_rng(seed).uniform(-2, 2, (sum(sizes), N_FEATURES)).astype(np.float32)
    return Candidates(features, np.cumsum([0, *sizes]), np.array([f"q{i}" for i in range(len(sizes))]))


@torch.no_grad()
def rank_plainly(chooser: SequentialPolicy, features: np.ndarray[Any, Any], k: int) -> list[int]:
    """One query, one position after the other, with the networks as they are."""
    documents = torch.from_numpy(chooser.normaliser.transform(features))
    placed: list[int] = []
    while len(placed) < min(k, len(documents)):
        state = chooser.encoder(documents[placed][None])[0, -1]
        left = [slot for slot in range(len(documents)) if slot not in placed]
        if chooser.behaviour is not None:
            probability = torch.stack([chooser.behaviour(state, documents[slot]) for slot in left]).softmax(dim=0)
            considered = (probability >= chooser.threshold * probability.max()).tolist()
            left = [slot for slot, consider in zip(left, considered, strict=True) if consider]
        placed.append(max(left, key=lambda slot: float(chooser.scorer(state, documents[slot]))))
    return placed + [-1] * (k - len(placed))


@pytest.mark.parametrize("with_behaviour", [False, True])
@pytest.mark.parametrize("encoder", ENCODERS.names())
def test_ranking_in_batches_equals_ranking_plainly(encoder: str, with_behaviour: bool) -> None:
    chooser = policy(encoder, with_behaviour=with_behaviour, threshold=0.2)
    candidates = some_candidates(5, 1, 12, 3, 8, 2, 7)
    ranking = chooser.rank(candidates, 6)
    for query, row in enumerate(ranking.tolist()):
        rows = slice(candidates.offsets[query], candidates.offsets[query + 1])
        assert row == rank_plainly(chooser, candidates.features[rows], 6)


def test_the_documents_above_change_the_choice() -> None:
    chooser, candidates = policy(), some_candidates(*[6] * 20)
    ranking = chooser.rank(candidates, 6)
    with torch.no_grad():
        documents = torch.from_numpy(chooser.normaliser.transform(candidates.features)).view(20, 6, N_FEATURES)
        start = chooser.encoder(torch.zeros(1, 0, N_FEATURES))[0, -1]
        by_first_state = chooser.scorer(start, documents).argsort(dim=1, descending=True)
    assert (ranking[:, 0] == by_first_state[:, 0].numpy()).all()
    assert (ranking != by_first_state.numpy()).any(axis=1).sum() > 5


def test_how_queries_are_batched_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    candidates = some_candidates(5, 1, 12, 3, 8, 2, 7, 9, 9)
    together, sampled = policy().rank(candidates, 4), policy().sampled(3).rank(candidates, 4)
    monkeypatch.setattr(cuolr.policies.sequential_policy, "DOCUMENTS_AT_A_TIME", 10)
    np.testing.assert_array_equal(policy().rank(candidates, 4), together)
    np.testing.assert_array_equal(policy().sampled(3).rank(candidates, 4), sampled)


def test_queries_without_documents_have_empty_rankings() -> None:
    assert policy().rank(some_candidates(0, 2, 0), 3)[[0, 2]].tolist() == [[-1] * 3] * 2
    assert policy().rank(some_candidates(), 3).shape == (0, 3)


def test_rankings_can_be_longer_than_the_training_lists() -> None:
    assert sorted(policy().rank(some_candidates(9), 9)[0].tolist()) == list(range(9))


@pytest.mark.parametrize("size", [2, 3, 7, 33])
def test_the_same_document_twice_keeps_its_order(size: int) -> None:
    candidates = some_candidates(size)
    candidates.features[:] = candidates.features[0]
    assert policy().rank(candidates, 6)[0].tolist() == ([*range(size)] + [-1] * 6)[:6]


def test_drawn_rankings_come_as_often_as_the_policy_says() -> None:
    chooser = policy("position")
    with torch.no_grad():
        chooser.scorer.output.weight *= 0.1  # so that no order is rare
    sessions, documents = 20_000, some_candidates(3).features
    candidates = Candidates(
        np.tile(documents, (sessions, 1)), 3 * np.arange(sessions + 1), np.arange(sessions).astype(str)
    )
    ranking = chooser.sampled(1).rank(candidates, 3)
    with torch.no_grad():
        states = chooser.encoder(torch.zeros(1, 2, N_FEATURES))[0]
        scaled = torch.from_numpy(chooser.normaliser.transform(documents))
        first, second = (chooser.scorer(states[t], scaled).double().exp() for t in range(2))
    for a, b, c in permutations(range(3)):
        exact = float(first[a] / first.sum() * second[b] / (second[b] + second[c]))
        drawn = (ranking == [a, b, c]).all(axis=1).mean()
        assert drawn == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / sessions))


def test_the_seed_decides_what_is_drawn() -> None:
    candidates = some_candidates(*[8] * 10)
    first, again, other = (policy().sampled(seed).rank(candidates, 5) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    assert (first != policy().rank(candidates, 5)).any()


def test_drawn_rankings_hold_each_document_once_and_end_early() -> None:
    ranking = policy(with_behaviour=True, threshold=0.9).sampled(4).rank(some_candidates(3, 1, 5), 5)
    assert [sorted(row[row >= 0].tolist()) for row in ranking] == [[0, 1, 2], [0], [0, 1, 2, 3, 4]]
    assert (ranking[0, 3:] == -1).all()


def test_missing_or_foreign_weights_are_refused() -> None:
    arrays, settings = policy().arrays(), policy().settings()
    del arrays["scorer.second.weight"]
    with pytest.raises(ValueError, match=r"scorer\.second\.weight: expected .* found none"):
        SequentialPolicy.from_parts(arrays, settings)
    with pytest.raises(ValueError, match=r"expected float32 \[.*\], found float32 \["):
        SequentialPolicy.from_parts(policy().arrays(), settings | {"hidden": [16, 8]})


def test_loading_leaves_the_random_state_alone() -> None:
    before = torch.get_rng_state()
    SequentialPolicy.from_parts(policy().arrays(), policy().settings())
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_features_that_are_no_numbers_cost_no_document_its_place(value: float) -> None:
    candidates = some_candidates(4, 3)
    candidates.features[2] = value
    chooser = policy()
    chooser.normaliser = Normaliser("none", np.empty(0), np.empty(0))
    for ranker in (chooser, chooser.sampled(1)):
        ranking = ranker.rank(candidates, 4)
        assert [sorted(row.tolist()) for row in ranking] == [[0, 1, 2, 3], [-1, 0, 1, 2]]


def test_the_first_of_equal_scores_is_chosen_among_those_considered() -> None:
    scores = torch.tensor([[1.0, 3.0, 3.0], [1.0, 3.0, 3.0], [2.0, 2.0 + 1e-7, 1.0], [2.0, 2.0001, 1.0]])
    considered = torch.tensor([[True, True, True], [True, False, True], [True, True, True], [True, True, True]])
    assert choose(scores, considered, uniforms=None).tolist() == [1, 2, 0, 1]


def test_a_draw_follows_the_cumulative_probability() -> None:
    scores = torch.tensor([0.5, 0.3, 0.2]).log().expand(5, 3)
    uniforms = torch.tensor([0.0, 0.49, 0.51, 0.79, 0.81], dtype=torch.float64)
    every = torch.ones(5, 3, dtype=torch.bool)
    assert choose(scores, every, uniforms).tolist() == [0, 0, 1, 1, 2]
    without_second = every.clone()
    without_second[:, 1] = False  # 5/7 and 2/7 are left
    assert choose(scores, without_second, uniforms).tolist() == [0, 0, 0, 2, 2]


def test_likely_is_relative_to_the_most_likely_that_is_possible() -> None:
    scores = torch.tensor([0.6, 0.3, 0.1]).log()
    for actions, threshold, expected in [
        ([True, True, True], 0.5, [True, True, False]),
        ([False, True, True], 0.3, [False, True, True]),
        ([True, True, False], 0.0, [True, True, False]),
        ([True, True, True], 1.0, [True, False, False]),
    ]:
        assert likely(scores, torch.tensor(actions), threshold - 1e-6 * (0 < threshold < 1), dim=0).tolist() == expected


@given(st.lists(st.integers(0, 20_000), max_size=60))
def test_batches_hold_each_query_with_documents_once_and_are_small(sizes: list[int]) -> None:
    batches = list(batches_by_size(np.array(sizes, np.int64)))
    assert sorted(query for batch in batches for query in batch) == [query for query, size in enumerate(sizes) if size]
    for batch in batches:
        padded = len(batch) * max(sizes[query] for query in batch)
        assert len(batch) == 1 or padded <= cuolr.policies.sequential_policy.DOCUMENTS_AT_A_TIME
