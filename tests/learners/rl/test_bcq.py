from dataclasses import replace

import numpy as np
import pytest
import torch

from cuolr.learners.rl.bcq import BCQ
from cuolr.learners.rl.mdp import Episodes
from cuolr.types import Candidates
from tests.learners.lists import N_FEATURES, K, build, random_batch


def built(threshold: float) -> BCQ:
    learner = build("bcq", threshold=threshold, behaviour_learning_rate=1e-2)
    assert isinstance(learner, BCQ)
    return learner


def test_with_threshold_zero_its_critic_learns_as_dqn_does() -> None:
    episodes = Episodes.of(random_batch(lengths=(4, 2, 3)), with_unshown=False)
    learner = built(0.0)
    considered, _ = learner.consider(episodes, learner.states(episodes))
    assert torch.equal(considered, episodes.actions)


def test_what_the_logger_would_not_place_is_not_considered() -> None:
    learner, episodes = built(0.5), Episodes.of(random_batch(lengths=(4, 2, 3)), with_unshown=False)
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


def test_with_threshold_one_it_ranks_as_the_logger_does() -> None:
    learner = built(1.0)
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
