import pytest
import torch

from cuolr.learners.rl.dqn import DQN
from cuolr.learners.rl.mdp import Episodes
from tests.learners.lists import build, random_batch


def built() -> DQN:
    learner = build("dqn", discount=0.5)
    assert isinstance(learner, DQN)
    # a target that differs from the critic, as after many steps
    with torch.no_grad():
        for parameter in learner.targets[0].parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
    return learner


@torch.no_grad()
def test_the_critic_chooses_and_the_target_values() -> None:
    learner, batch = built(), random_batch(lengths=(4, 3, 1))
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
    learner = built()
    arrays = learner.policy().arrays()
    for name, values in learner.critics[0].state_dict().items():
        assert (arrays[f"scorer.{name}"] == values.numpy()).all()
