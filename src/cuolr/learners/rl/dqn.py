"""`dqn`: double deep Q-learning, without an actor network."""

from dataclasses import dataclass

import torch
from torch import Tensor

from cuolr.learners.rl.critics import CriticConfig, CriticLearner
from cuolr.learners.rl.mdp import Episodes
from cuolr.learners.rl.sequential import Losses
from cuolr.policies.sequential_policy import SequentialPolicy
from cuolr.training.base_learner import LEARNERS


@dataclass(frozen=True)
class DqnConfig(CriticConfig):
    """Settings of DQN: those of `CriticConfig`."""


@LEARNERS.register("dqn")
class DQN(CriticLearner):
    """Q-learning with V(s) = Q′(s, argmax_a Q(s, a)), van Hasselt et al. 2016; ranks by Q."""

    Config = DqnConfig
    config: DqnConfig
    n_critics = 1

    def losses(self, episodes: Episodes) -> Losses:
        """The critic's squared error."""
        states = self.states(episodes)
        considered, other_losses = self.consider(episodes, states)
        next_value = episodes.next(self._next_values(episodes, states, considered))
        q: Tensor = self.critics[0](states, episodes.logged_documents)
        return Losses(
            minimised={"critic_loss": self.squared_error(episodes, [q], next_value), **other_losses},
            watched={"q": episodes.mean(q.detach())},
            log_likelihood=self.click_likelihood(episodes, [q], next_value),
        )

    def consider(self, episodes: Episodes, states: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """[K, N, B] true = the greedy policy may take this action; and the losses of the model that decides this."""
        return episodes.actions, {}

    def live_policy(self) -> SequentialPolicy:
        """Ranks greedily by the critic."""
        return self.greedy_policy(self.critics[0])

    @torch.no_grad()
    def _next_values(self, episodes: Episodes, states: Tensor, considered: Tensor) -> Tensor:
        """[K − 1, B] V(s) of the states after the first."""
        if len(states) == 1:
            return states.new_zeros(0, states.shape[1])  # no document is left to choose from
        q = self.critics[0].remaining(states[1:], episodes.documents[1:])
        greedy = q.where(considered[1:, 1:], -torch.inf).argmax(dim=1)
        chosen = episodes.documents[1:][greedy, torch.arange(greedy.shape[1])]
        values: Tensor = self.targets[0](states[1:], chosen)
        return values
