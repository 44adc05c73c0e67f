from dataclasses import replace
from math import log
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from cuolr.learners.rl.bc import BC
from cuolr.learners.rl.mdp import Episodes
from cuolr.learners.rl.sac import SAC
from cuolr.networks.encoder import ENCODERS
from cuolr.training.batches import SessionBatch
from cuolr.types import Candidates
from tests.learners.lists import N_FEATURES, K, build, random_batch
from tests.learners.rl.plain import plain_losses

# A list of three documents and one of two, padded; the first query has one unshown document, the second two.
BATCH = SessionBatch(
    features=torch.tensor([[[1.0], [2.0], [4.0]], [[5.0], [6.0], [0.0]]]),
    rewards=torch.tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]),
    where=torch.tensor([[True, True, True], [True, True, False]]),
    weight=torch.tensor([1.0, 3.0]),
    unshown=torch.tensor([[[8.0], [0.0]], [[9.0], [10.0]]]),
    unshown_where=torch.tensor([[True, False], [True, True]]),
)


def test_at_each_step_what_is_not_placed_can_be_placed() -> None:
    episodes = Episodes.of(BATCH, with_unshown=False)
    first_list = [[True, True, True], [False, True, True], [False, False, True]]
    second_list = [[True, True, False], [False, True, False], [False, False, False]]
    assert episodes.actions[:, :, 0].tolist() == first_list
    assert episodes.actions[:, :, 1].tolist() == second_list
    assert episodes.documents[:, :, 0].T.tolist() == [[1, 2, 4], [5, 6, 0]]


def test_unshown_documents_can_be_placed_at_every_step_of_the_list() -> None:
    episodes = Episodes.of(BATCH, with_unshown=True)
    assert episodes.documents[:, :, 0].T.tolist() == [[1, 2, 4, 8, 0], [5, 6, 0, 9, 10]]
    assert episodes.actions[:, 3:, 0].tolist() == [[True, False]] * 3
    assert episodes.actions[:, 3:, 1].tolist() == [[True, True], [True, True], [False, False]]


def test_the_log_takes_its_documents_in_order_and_is_rewarded_by_clicks() -> None:
    episodes = Episodes.of(BATCH, with_unshown=True)
    assert episodes.logged_documents[:, :, 0].T.tolist() == [[1, 2, 4], [5, 6, 0]]
    assert episodes.rewards.T.tolist() == [[0, 1, 0], [1, 0, 0]]
    assert episodes.steps.T.tolist() == BATCH.where.tolist()
    pairs = torch.arange(3 * 5 * 2).view(3, 5, 2)
    assert torch.equal(episodes.logged(pairs), torch.stack([pairs[0, 0], pairs[1, 1], pairs[2, 2]]))


def test_there_is_nothing_after_the_last_document() -> None:
    episodes = Episodes.of(BATCH, with_unshown=False)
    values_after_the_first = torch.tensor([[10.0, 20.0], [30.0, 40.0]])
    assert episodes.next(values_after_the_first).tolist() == [[10, 20], [30, 0], [0, 0]]


def test_means_are_over_the_documents_shown_weighted_by_sessions() -> None:
    episodes = Episodes.of(BATCH, with_unshown=False)
    values = torch.tensor([[1.0, 10.0], [2.0, 20.0], [3.0, torch.nan]])
    assert episodes.mean(values).item() == pytest.approx((1 * (1 + 2 + 3) + 3 * (10 + 20)) / 5)
    assert episodes.mean_per_list(values).tolist() == pytest.approx([(1 + 2 + 3) / 3, (10 + 20) / 2])


def test_the_mean_of_what_is_left_counts_real_documents_alone() -> None:
    left = Episodes.of(BATCH, with_unshown=False).mean_left()[:, :, 0]
    assert left.T.tolist() == [pytest.approx([(1 + 2 + 4) / 3, (2 + 4) / 2, 4]), pytest.approx([(5 + 6) / 2, 6, 0])]
    left = Episodes.of(BATCH, with_unshown=True).mean_left()[:, :, 0]
    assert left[:, 0].tolist() == pytest.approx([(1 + 2 + 4 + 8) / 4, (2 + 4 + 8) / 3, (4 + 8) / 2])
    assert left[:2, 1].tolist() == pytest.approx([(5 + 6 + 9 + 10) / 4, (6 + 9 + 10) / 3])


def test_a_policy_that_knows_nothing_pays_the_entropy_of_a_uniform_choice() -> None:
    learner = build("bc")
    assert isinstance(learner, BC)
    with torch.no_grad():
        learner.actor.output.weight.zero_()
    batch = replace(random_batch(lengths=(4, 2)), weight=torch.ones(2))
    long, short = log(4) + log(3) + log(2) + log(1), log(2) + log(1)
    assert learner.held_out_scores(batch).tolist() == pytest.approx([-long / 4, -short / 2])
    assert learner.update(batch)["actor_loss"] == pytest.approx((long + short) / 6)


def test_it_learns_the_order_of_the_log() -> None:
    learner = build("bc", actor_learning_rate=1e-2)
    batch = random_batch(lengths=(K,) * 40)
    order = batch.features[:, :, 0].argsort(dim=1, descending=True)
    batch = replace(batch, features=batch.features.gather(1, order[:, :, None].expand_as(batch.features)))
    for _ in range(150):
        learner.update(batch)
    values = np.random.default_rng(0).uniform(-1, 1, (30, N_FEATURES)).astype(np.float32)
    values[:, 0] = np.tile([-0.8, 0.1, 0.9], 10)
    ranking = learner.policy().rank(Candidates(values, 3 * np.arange(11), np.arange(10).astype(str)), 3)
    assert (ranking == [2, 1, 0]).mean() > 0.9


def test_clicks_do_not_matter_to_it() -> None:
    batch = random_batch()
    assert build("bc").update(batch) == build("bc").update(replace(batch, rewards=1 - batch.rewards))


FULL, PADDED = (4, 4, 4, 4, 4), (4, 1, 3, 2, 4)


def gradients(learner: SAC, losses: dict[str, Tensor]) -> dict[str, Tensor]:
    learner.networks.zero_grad()
    torch.autograd.backward(list(losses.values()))
    return {
        name: torch.zeros_like(parameter) if parameter.grad is None else parameter.grad.clone()
        for name, parameter in learner.networks.named_parameters()
    }


def check(name: str, lengths: tuple[int, ...], **settings: Any) -> None:
    learner = build(name, entropy_weight=0.1, **settings)
    assert isinstance(learner, SAC)
    with_unshown = settings.get("candidates") == "all"
    for seed in range(3):  # also after a step or two, where actor, critics and targets are no longer near 0
        batch = random_batch(seed, lengths, n_unshown=3 if with_unshown else 0)
        fast = learner.losses(Episodes.of(batch, with_unshown)).minimised
        plain = plain_losses(learner, batch)
        assert fast.keys() == plain.keys()
        for term in plain:
            torch.testing.assert_close(fast[term], plain[term], rtol=1e-5, atol=1e-5)
        expected = gradients(learner, plain)
        for parameter, gradient in gradients(learner, fast).items():
            torch.testing.assert_close(gradient, expected[parameter], rtol=1e-5, atol=1e-5, msg=parameter)
        learner.update(batch)


@pytest.mark.parametrize("candidates", ["shown", "all"])
@pytest.mark.parametrize("lengths", [FULL, PADDED], ids=["full", "padded"])
@pytest.mark.parametrize("encoder", ENCODERS.names())
@pytest.mark.parametrize("name", ["sac", "cql"])
def test_losses_and_gradients_equal_those_of_the_plain_version(
    name: str, encoder: str, lengths: tuple[int, ...], candidates: str
) -> None:
    check(name, lengths, encoder=encoder, candidates=candidates, critic_learning_rate=0.1, actor_learning_rate=0.1)


def test_so_do_those_of_the_published_conservative_term() -> None:
    check("cql", PADDED, conservative_term="mean", candidates="all")


def test_so_do_those_of_an_encoder_that_learns_from_the_critics_alone() -> None:
    check("sac", PADDED, encoder_learns_from="critics")


def test_so_do_those_of_lists_of_one_document() -> None:
    check("cql", (1, 0, 1), k=1)
