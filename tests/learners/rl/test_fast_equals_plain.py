from typing import Any

import pytest
import torch
from torch import Tensor

from cuolr.learners.rl.mdp import Episodes
from cuolr.learners.rl.sac import SAC
from cuolr.networks.encoder import ENCODERS
from tests.learners.lists import build, random_batch
from tests.learners.rl.plain import plain_losses

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
