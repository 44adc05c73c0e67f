"""`iql`: implicit Q-learning, which evaluates only logged actions, with advantage-weighted regression."""

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor, nn

from cuolr.config import Range
from cuolr.learners.rl.critics import CriticConfig, CriticLearner
from cuolr.learners.rl.mdp import Episodes
from cuolr.learners.rl.sequential import Losses
from cuolr.networks.layers import log_softmax
from cuolr.policies.sequential_policy import SequentialPolicy
from cuolr.training.base_learner import LEARNERS

# Advantage weights are clipped here, as in the code of Kostrikov et al.
MAX_ADVANTAGE_WEIGHT = 100.0


@dataclass(frozen=True)
class IqlConfig(CriticConfig):
    """Settings of IQL, in addition to those of `CriticConfig`.

    Attributes:
        actor_learning_rate: Learning rate of the actor.
        value_learning_rate: Learning rate of the value network.
        expectile: Expectile of Q over the logged actions that V estimates; 0.5 = the mean, near 1 = the maximum.
        advantage_weight: Inverse temperature of the advantage weights: how strongly the actor prefers better actions.
    """

    actor_learning_rate: Annotated[float, Range(0, 1)] = 1e-4
    value_learning_rate: Annotated[float, Range(0, 1)] = 1e-4
    expectile: Annotated[float, Range(0, 1)] = 0.7
    advantage_weight: Annotated[float, Range(0)] = 3.0


@LEARNERS.register("iql")
class IQL(CriticLearner):
    """Expectile regression for V, and a policy by advantage-weighted regression; Kostrikov et al. 2022.

    Deviation: the value of a state depends on the remaining documents, which differ from query to query, so the input
    of V is the state and the mean of the remaining documents.
    """

    Config = IqlConfig
    config: IqlConfig
    n_critics = 2

    def build_networks(self) -> dict[str, tuple[nn.Module, float]]:
        """The actor, the value network and twin critics."""
        self.actor, self.value = self.pair_network(), self.pair_network()
        return {
            "actor": (self.actor, self.config.actor_learning_rate),
            "value": (self.value, self.config.value_learning_rate),
            **super().build_networks(),
        }

    def losses(self, episodes: Episodes) -> Losses:
        """The losses, with the advantage A = min_i Q′_i(s, a) − V(s) of the logged actions.

        V minimises E[|expectile − 1(A < 0)| A²], the critics ½ E[(Q − r − γ V(s′))²] and the actor
        −E[min(exp(w A), 100) log π(a | s)].
        """
        states, logged = self.states(episodes), episodes.logged_documents
        value: Tensor = self.value(states, episodes.mean_left())
        with torch.no_grad():
            target_q = torch.stack([target(states, logged) for target in self.targets]).amin(dim=0)
        advantage = target_q - value
        steepness = torch.where(advantage < 0, 1 - self.config.expectile, self.config.expectile)
        weight = (self.config.advantage_weight * advantage.detach()).exp().clamp(max=MAX_ADVANTAGE_WEIGHT)
        log_policy = log_softmax(self.actor.remaining(states, episodes.documents), episodes.actions)
        q = [critic(states, logged) for critic in self.critics]
        next_value = episodes.next(value[1:].detach())
        return Losses(
            minimised={
                "value_loss": episodes.mean(steepness * advantage.square()),
                "critic_loss": self.squared_error(episodes, q, next_value),
                "actor_loss": -episodes.mean(weight * episodes.logged(log_policy)),
            },
            watched={"q": episodes.mean(q[0].detach()), "advantage": episodes.mean(advantage.detach())},
            log_likelihood=self.click_likelihood(episodes, q, next_value),
        )

    def live_policy(self) -> SequentialPolicy:
        """Ranks greedily by the actor."""
        return self.greedy_policy(self.actor)
