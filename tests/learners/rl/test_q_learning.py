from dataclasses import replace
from math import exp, log
from typing import Any

import numpy as np
import pytest
import torch

from cuolr.errors import InputError
from cuolr.learners.rl.bcq import BCQ
from cuolr.learners.rl.cql import CQL
from cuolr.learners.rl.dqn import DQN
from cuolr.learners.rl.iql import IQL
from cuolr.learners.rl.mdp import Episodes
from cuolr.types import Candidates
from tests.learners.lists import N_FEATURES, K, build, random_batch


def built_dqn() -> DQN:
    learner = build("dqn", discount=0.5)
    assert isinstance(learner, DQN)
    # a target that differs from the critic, as after many steps
    with torch.no_grad():
        for parameter in learner.targets[0].parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
    return learner


@torch.no_grad()
def test_the_critic_chooses_and_the_target_values() -> None:
    learner, batch = built_dqn(), random_batch(lengths=(4, 3, 1))
    critic, target = learner.critics[0], learner.targets[0]
    total = 0.0
    for row, length in enumerate((4, 3, 1)):
        states = learner.encoder(batch.features[row : row + 1])[0]
        for t in range(length):
            following = 0.0
            if t + 1 < length:
                left = batch.features[row, t + 1 : length]
                state = states[t + 1].expand(len(left), -1)
                following = target(state, left)[critic(state, left).argmax()].item()
            error = critic(states[t], batch.features[row, t]).item() - batch.rewards[row, t].item() - 0.5 * following
            total += batch.weight[row].item() * error**2 / 2
    losses = learner.losses(Episodes.of(batch, with_unshown=False)).minimised
    assert losses.keys() == {"critic_loss"}
    assert losses["critic_loss"].item() == pytest.approx(total / (4 + 3 + 1), rel=1e-5)


def test_it_ranks_by_its_critic() -> None:
    learner = built_dqn()
    arrays = learner.policy().arrays()
    for name, values in learner.critics[0].state_dict().items():
        assert (arrays[f"scorer.{name}"] == values.numpy()).all()


def built_bcq(threshold: float) -> BCQ:
    learner = build("bcq", threshold=threshold, behaviour_learning_rate=1e-2)
    assert isinstance(learner, BCQ)
    return learner


def test_with_threshold_zero_its_critic_learns_as_dqn_does() -> None:
    episodes = Episodes.of(random_batch(lengths=(4, 2, 3)), with_unshown=False)
    learner = built_bcq(0.0)
    considered, _ = learner.consider(episodes, learner.states(episodes))
    assert torch.equal(considered, episodes.actions)


def test_what_the_logger_would_not_place_is_not_considered() -> None:
    learner, episodes = built_bcq(0.5), Episodes.of(random_batch(lengths=(4, 2, 3)), with_unshown=False)
    with torch.no_grad():
        learner.behaviour.output.weight *= 50  # a logger that knows what it wants
        considered, losses = learner.consider(episodes, learner.states(episodes))
        scores = learner.behaviour.remaining(learner.states(episodes), episodes.documents)
    total = 0.0
    for t, b in episodes.steps.nonzero().tolist():
        possible = episodes.actions[t, :, b]
        probability = torch.zeros(len(possible))
        probability[possible] = scores[t, possible, b].softmax(dim=0)
        assert torch.equal(considered[t, :, b], probability >= 0.5 * probability.max())
        total -= episodes.weight[b].item() * probability[t].log().item()
    assert (considered & episodes.actions).sum() < episodes.actions.sum()
    assert losses["behaviour_loss"].item() == pytest.approx(total / 9, rel=1e-4)


@pytest.mark.thorough
def test_with_threshold_one_it_ranks_as_the_logger_does() -> None:
    learner = built_bcq(1.0)
    # a logger that sorts by the first feature
    features = torch.rand(40, K, N_FEATURES, generator=torch.Generator().manual_seed(5))
    order = features[:, :, 0].argsort(dim=1, descending=True)
    batch = random_batch(lengths=(K,) * 40)
    batch = replace(batch, features=features.gather(1, order[:, :, None].expand_as(features)))
    for _ in range(300):
        learner.update(batch)
    values = np.random.default_rng(0).random((30, N_FEATURES)).astype(np.float32)
    values[:, 0] = np.tile([0.1, 0.5, 0.9], 10)
    ranking = learner.policy().rank(Candidates(values, 3 * np.arange(11), np.arange(10).astype(str)), 3)
    assert (ranking == [2, 1, 0]).mean() > 0.9


def built_cql(**settings: Any) -> CQL:
    learner = build("cql", **settings)
    assert isinstance(learner, CQL)
    return learner


@pytest.mark.parametrize("candidates", ["shown", "all"])
def test_with_weight_zero_it_is_sac_to_the_bit(candidates: str) -> None:
    cql, sac = built_cql(conservative_weight=0.0, candidates=candidates), build("sac", candidates=candidates)
    for seed in range(5):
        batch = random_batch(seed, lengths=(4, 2, 3, 4), n_unshown=3)
        assert cql.update(batch) == sac.update(batch)
        assert torch.equal(cql.held_out_scores(batch), sac.held_out_scores(batch))
    ours, theirs = cql.state()["networks"], sac.state()["networks"]
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_with_a_tiny_weight_it_is_nearly_sac() -> None:
    cql, sac = built_cql(conservative_weight=1e-9), build("sac")
    for seed in range(3):
        plotted, expected = cql.update(random_batch(seed)), sac.update(random_batch(seed))
        del plotted["conservative_loss"]
        assert plotted == pytest.approx(expected, rel=1e-4, abs=1e-5)


Q = [[1.0, 2.0, 3.0], [0.0, 0.5, -1.0], [0.0, 0.0, 0.25]]  # Q(s_t, document j), of which j ≥ t count


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        (
            "logged",
            (log(exp(1) + exp(2) + exp(3)) - 1 + log(exp(0.5) + exp(-1)) - 0.5 + log(exp(0.25)) - 0.25) / 3,
        ),
        (
            "mean",
            (log(exp(1) + exp(2) + exp(3)) - (1 + 2 + 3) / 3 + log(exp(0.5) + exp(-1)) - (0.5 - 1) / 2) / 3,
        ),
    ],
)
def test_the_conservative_term_is_that_of_equation_five(term: str, expected: float) -> None:
    learner = built_cql(conservative_weight=0.1, conservative_term=term)
    episodes = Episodes.of(random_batch(lengths=(3,), k=3), with_unshown=False)
    q = torch.tensor(Q)[:, :, None]
    losses = learner.critic_terms(episodes, [q, q])
    weight = episodes.weight.item()
    assert losses["conservative_loss"].item() == pytest.approx(2 * 0.1 * weight * expected, rel=1e-5)


@pytest.mark.thorough
def test_the_term_lowers_the_value_of_what_was_not_logged() -> None:
    batch = random_batch()
    episodes = Episodes.of(batch, with_unshown=False)

    def gap(weight: float) -> float:
        learner = built_cql(conservative_weight=weight, critic_learning_rate=1e-2)
        for _ in range(100):
            learner.update(batch)
        with torch.no_grad():
            q = learner.critics[0].remaining(learner.states(episodes), episodes.documents)
        return float((episodes.logged(q)[0] - q[0].mean(dim=0)).mean())

    assert gap(1.0) > gap(0.0) + 0.1


def test_a_negative_weight_is_refused() -> None:
    with pytest.raises(InputError, match=r"setting 'learner\.conservative_weight': expected a finite number >= 0"):
        built_cql(conservative_weight=-1.0)
    with pytest.raises(InputError, match="expected a finite number >= 0, found inf"):
        built_cql(conservative_weight=float("inf"))


def built_iql(**settings: Any) -> IQL:
    learner = build("iql", discount=0.5, **settings)
    assert isinstance(learner, IQL)
    return learner


@torch.no_grad()
def test_losses_are_those_of_the_paper() -> None:
    lengths = (4, 3, 1)
    learner, batch = built_iql(expectile=0.7, advantage_weight=3.0), random_batch(lengths=lengths)
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
    learner = built_iql(advantage_weight=1e6)
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
    learner = built_iql()
    losses = learner.losses(Episodes.of(random_batch(), with_unshown=False)).minimised
    torch.autograd.backward(losses["actor_loss"])
    assert all(parameter.grad is None for parameter in learner.value.parameters())
    assert all(parameter.grad is None for critic in learner.critics for parameter in critic.parameters())
