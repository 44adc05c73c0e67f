from math import exp
from typing import Any

import pytest
import torch

from cuolr.learners.rl.iql import IQL
from cuolr.learners.rl.mdp import Episodes
from tests.learners.lists import build, random_batch


def built(**settings: Any) -> IQL:
    learner = build("iql", discount=0.5, **settings)
    assert isinstance(learner, IQL)
    return learner


@torch.no_grad()
def test_losses_are_those_of_the_paper() -> None:
    lengths = (4, 3, 1)
    learner, batch = built(expectile=0.7, advantage_weight=3.0), random_batch(lengths=lengths)
    # as after many steps: the targets differ from the critics, and some advantages are positive
    generator = torch.Generator().manual_seed(1)
    for target in learner.targets:
        for parameter in target.parameters():
            torch.nn.init.normal_(parameter, std=0.3, generator=generator)
        target.output.bias.add_(0.5)
    value_loss = critic_loss = actor_loss = 0.0
    signs = set()
    for row, length in enumerate(lengths):
        documents, weight = batch.features[row, :length], batch.weight[row].item()
        states = learner.encoder(documents[None])[0]

        def value(t: int, states: torch.Tensor = states, documents: torch.Tensor = documents) -> float:
            return float(learner.value(states[t], documents[t:].mean(dim=0))) if t < len(documents) else 0.0

        for t in range(length):
            q_target = min(float(target(states[t], documents[t])) for target in learner.targets)
            advantage = q_target - value(t)
            signs.add(advantage > 0)
            value_loss += weight * (0.7 if advantage > 0 else 0.3) * advantage**2
            for critic in learner.critics:
                error = float(critic(states[t], documents[t])) - batch.rewards[row, t].item() - 0.5 * value(t + 1)
                critic_loss += weight * error**2 / 2
            left = learner.actor(states[t].expand(length - t, -1), documents[t:])
            actor_loss -= weight * min(exp(3 * advantage), 100) * left.log_softmax(dim=0)[0].item()
    assert signs == {True, False}
    losses = learner.losses(Episodes.of(batch, with_unshown=False)).minimised
    expected = {"value_loss": value_loss / 8, "critic_loss": critic_loss / 8, "actor_loss": actor_loss / 8}
    assert {name: loss.item() for name, loss in losses.items()} == pytest.approx(expected, rel=1e-4)


def test_no_action_is_imitated_more_than_a_hundred_times() -> None:
    learner = built(advantage_weight=1e6)
    with torch.no_grad():
        for target in learner.targets:
            target.output.bias.add_(10)
    batch = random_batch(lengths=(2, 2))
    episodes = Episodes.of(batch, with_unshown=False)
    with torch.no_grad():
        scores = learner.actor.remaining(learner.states(episodes), episodes.documents)[0, :2]
        expected = 100 * (-scores.log_softmax(dim=0)[0] * batch.weight).sum() / 4  # the second choice is certain
        loss = learner.losses(episodes).minimised["actor_loss"]
    torch.testing.assert_close(loss, expected)


def test_the_actor_learns_from_advantages_but_does_not_change_them() -> None:
    learner = built()
    losses = learner.losses(Episodes.of(random_batch(), with_unshown=False)).minimised
    torch.autograd.backward(losses["actor_loss"])
    assert all(parameter.grad is None for parameter in learner.value.parameters())
    assert all(parameter.grad is None for critic in learner.critics for parameter in critic.parameters())
