"""The base class of learners with critics: target networks and the squared error."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from torch import Tensor, nn

from cuolr.config import Range
from cuolr.learners.rl.mdp import Episodes
from cuolr.learners.rl.sequential import Losses, SequentialConfig, SequentialLearner
from cuolr.networks.layers import PairNetwork, follow
from cuolr.training.warm_start import WarmStart

# Implied click probabilities are clipped to this range, so that one impossible click does not dominate a score.
LEAST_PROBABILITY, GREATEST_PROBABILITY = 0.001, 0.999


@dataclass(frozen=True)
class CriticConfig(SequentialConfig):
    """Settings of every learner with critics, in addition to those of `SequentialConfig`.

    Attributes:
        critic_learning_rate: Learning rate of the critics, η_Q of Algorithm 1.
        discount: Discount factor γ.
        target_rate: Rate τ of the soft update of the target networks.
    """

    critic_learning_rate: Annotated[float, Range(0, 1)] = 1e-4
    discount: Annotated[float, Range(0, 1)] = 0.8
    target_rate: Annotated[float, Range(0, 1)] = 5e-3


class CriticLearner(SequentialLearner):
    """Estimates Q(s, a), the expected discounted rewards (clicks, unless the log has rewards) from a position on.

    The target networks θ′ are copies of the critics only. They read the states of the current encoder, without a
    gradient, as in Algorithm 1, where ψ has no target network.
    """

    config: CriticConfig
    n_critics: ClassVar[int]

    def build_networks(self) -> dict[str, tuple[nn.Module, float]]:
        """The critics and their target networks."""
        self.critics: Sequence[PairNetwork] = [self.pair_network() for _ in range(self.n_critics)]
        self.targets: Sequence[PairNetwork] = copy.deepcopy(self.critics)
        targets = nn.ModuleList(self.targets).requires_grad_(False)
        return {"critics": (nn.ModuleList(self.critics), self.config.critic_learning_rate), "targets": (targets, 0.0)}

    def start_from(self, start: WarmStart) -> None:
        """Take over the networks; without a checkpoint, the target networks are copies of the critics, as always."""
        super().start_from(start)
        if start.networks is None:
            follow(self.networks["targets"], self.networks["critics"], 1.0)

    def after_step(self, losses: Losses) -> None:
        """Update the target networks: θ′ ← θ′ + τ (θ − θ′)."""
        follow(self.networks["targets"], self.networks["critics"], self.config.target_rate)

    def squared_error(self, episodes: Episodes, q: Sequence[Tensor], next_value: Tensor) -> Tensor:
        """½ E[(Q(s, a) − r − γ V(s′))²], the second half of equation 5, summed over the critics.

        Args:
            episodes: The episodes with their rewards.
            q: [K, B] for each critic, Q(s, a) of the logged actions.
            next_value: [K, B] V(s′), without a gradient.
        """
        target = episodes.rewards + self.config.discount * next_value
        return torch.stack([episodes.mean((values - target).square()) / 2 for values in q]).sum()

    def click_likelihood(self, episodes: Episodes, q: Sequence[Tensor], next_value: Tensor) -> Tensor:
        """[K, B] the log-likelihood of the clicks with P(click) = Q(s, a) − γ V(s′), the implied one-step reward.

        Q is the mean of the critics. Rewards count as in `two-tower`: up to 1, the mean reward of a click, as fractions
        of a click, and larger ones as clicks with a weight.
        """
        implied = torch.stack(list(q)).detach().mean(dim=0) - self.config.discount * next_value
        probability = implied.clamp(LEAST_PROBABILITY, GREATEST_PROBABILITY)
        return episodes.rewards * probability.log() + (1 - episodes.rewards).clamp(min=0) * (1 - probability).log()
