"""Layers and masked softmax."""

from math import exp, log

import pytest
import torch

from cuolr.networks.layers import (
    DOCUMENTS_AT_A_TIME,
    DocumentNetwork,
    PairNetwork,
    follow,
    log_softmax,
    logsumexp,
    seeded,
)


def network(n_states: int = 5, n_features: int = 3) -> PairNetwork:
    with seeded(0):
        return PairNetwork(n_states, n_features, (8, 6))


@torch.no_grad()
def test_the_split_first_layer_equals_the_layer_over_state_and_document() -> None:
    pairs = network()
    states, documents = torch.randn(4, 5), torch.randn(4, 3)
    together = torch.cat([states, documents], dim=1)
    expected = pairs.output(pairs.second(pairs.first(together).relu()).relu()).squeeze(-1)
    torch.testing.assert_close(pairs(states, documents), expected)


@torch.no_grad()
@pytest.mark.parametrize("n_documents", [3, 5])
def test_every_document_that_is_left_is_scored_and_no_other(n_documents: int) -> None:
    pairs = network()
    states, documents = torch.randn(3, 2, 5), torch.randn(n_documents, 2, 3)
    scores = pairs.remaining(states, documents)
    assert scores.shape == (3, n_documents, 2)
    for t in range(3):
        assert (scores[t, :t] == 0).all()
        for j in range(t, n_documents):
            torch.testing.assert_close(scores[t, j], pairs(states[t], documents[j]), rtol=1e-5, atol=1e-6)


def test_no_states_have_no_scores() -> None:
    assert network().remaining(torch.zeros(0, 2, 5), torch.zeros(3, 2, 3)).shape == (0, 3, 2)


def test_a_target_goes_a_part_of_the_way() -> None:
    target, source = network(), network()
    torch.nn.init.constant_(target.output.weight, 1.0)
    torch.nn.init.constant_(source.output.weight, 3.0)
    follow(target, source, 0.25)
    assert target.output.weight.flatten().tolist() == pytest.approx([1 + 0.25 * (3 - 1)] * 6)
    assert source.output.weight.flatten().tolist() == [3.0] * 6


def test_networks_depend_on_the_seed_and_leave_the_random_state_alone() -> None:
    before = torch.get_rng_state()
    first, second = network(), network()
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(first.first.weight, second.first.weight)


def test_a_softmax_is_over_what_is_real() -> None:
    scores = torch.tensor([[[1.0], [2.0], [50.0]], [[3.0], [4.0], [5.0]]])
    where = torch.tensor([[[True], [True], [False]], [[False], [False], [False]]])
    total = log(exp(1) + exp(2))
    assert log_softmax(scores, where).flatten().tolist() == pytest.approx([1 - total, 2 - total, 0, 0, 0, 0])
    assert logsumexp(scores, where)[0].item() == pytest.approx(total)


def test_where_nothing_is_real_gradients_are_zero_and_not_nan() -> None:
    scores = torch.randn(1, 3, 1, requires_grad=True)
    where = torch.zeros(1, 3, 1, dtype=torch.bool)
    weightless = 0 * logsumexp(scores, where).sum()
    torch.autograd.backward(log_softmax(scores, where).sum() + weightless)
    assert scores.grad is not None
    assert scores.grad.tolist() == [[[0.0], [0.0], [0.0]]]


@pytest.mark.parametrize("n", [0, 1, 2_047, 2_049, 4_096, 6_151])
def test_documents_scored_in_parts_have_the_scores_of_all_at_once(n: int) -> None:
    network = DocumentNetwork(5, (8, 8))
    documents = torch.randn(n, 5, generator=torch.Generator().manual_seed(n))
    parts: list[int] = []
    network.register_forward_pre_hook(lambda _, given: parts.append(len(given[0])))
    with torch.no_grad():
        in_parts = network.in_parts(documents)
        torch.testing.assert_close(in_parts, network(documents))
    assert max(parts[:-1]) < 2 * DOCUMENTS_AT_A_TIME
    assert min(parts[:-1]) >= min(n, DOCUMENTS_AT_A_TIME)
