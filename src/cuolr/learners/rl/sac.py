"""`sac`: discrete soft actor-critic; the actions are the documents that are not placed yet."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch
from torch import Tensor, nn

from cuolr.config import Range
from cuolr.learners.rl.critics import CriticConfig, CriticLearner
from cuolr.learners.rl.mdp import Episodes
from cuolr.learners.rl.sequential import Losses
from cuolr.networks.layers import log_softmax
from cuolr.policies.sequential_policy import SequentialPolicy
from cuolr.training.base_learner import LEARNERS, SearchSpace

# Initial value of the automatic entropy weight, in clicks per nat.
FIRST_ENTROPY_WEIGHT = 0.1
# What tuning tries of the learning rates of an actor-critic.
LEARNING_RATES: SearchSpace = {
    "learner.actor_learning_rate": (1e-4, 3e-4, 1e-3, 3e-3),
    "learner.critic_learning_rate": (1e-4, 3e-4, 1e-3, 3e-3),
    "learner.encoder_learning_rate": (1e-6, 1e-4),
}


@dataclass(frozen=True)
class SacConfig(CriticConfig):
    """Settings of SAC, in addition to those of `CriticConfig`.

    Attributes:
        actor_learning_rate: Learning rate of the actor, η_π of Algorithm 1.
        entropy_weight: Weight of the policy's entropy, in clicks per nat; `automatic` = adapted to `target_entropy`.
        target_entropy: Target of an `automatic` entropy weight, as a fraction of the entropy of a uniform policy.
        entropy_learning_rate: Learning rate of an `automatic` entropy weight.
        encoder_learns_from: Networks whose losses train the encoder.
    """

    actor_learning_rate: Annotated[float, Range(0, 1)] = 1e-4
    entropy_weight: Annotated[float, Range(0)] | Literal["automatic"] = 1e-10
    target_entropy: Annotated[float, Range(0, 1)] = 0.5
    entropy_learning_rate: Annotated[float, Range(0, 1)] = 1e-2
    encoder_learns_from: Literal["critics and actor", "critics"] = "critics and actor"


@LEARNERS.register("sac")
class SAC(CriticLearner):
    """Algorithm 1 without the conservative term; Haarnoja et al. 2018, for discrete actions Christodoulou 2019.

    Expectations over the policy are exact sums over the remaining documents; no action is sampled.

    Deviation: in the actor's loss, Q has no gradient with respect to the state either, so that the encoder cannot raise
    the value of a policy by changing the representation of a state. Both losses are computed with the same parameters
    and all networks are updated together, which saves a second pass through every network.
    """

    Config = SacConfig
    config: SacConfig
    search_space: ClassVar[SearchSpace] = {**LEARNING_RATES, "learner.encoder_settings.residual": (True, False)}
    n_critics = 2

    def build_networks(self) -> dict[str, tuple[nn.Module, float]]:
        """The actor, the entropy weight and twin critics."""
        self.actor = self.pair_network()
        automatic = self.config.entropy_weight == "automatic"
        self.entropy = EntropyWeight(FIRST_ENTROPY_WEIGHT if automatic else float(self.config.entropy_weight))
        return {
            "actor": (self.actor, self.config.actor_learning_rate),
            "entropy": (self.entropy, 0.0),
            **super().build_networks(),
        }

    def losses(self, episodes: Episodes) -> Losses:
        """The critics' squared error and the actor's loss E_s Σ_a π(a | s) [w log π(a | s) − min_i Q_i(s, a)]."""
        states = self.states(episodes)
        for_actor = states if self.config.encoder_learns_from == "critics and actor" else states.detach()
        log_policy = log_softmax(self.actor.remaining(for_actor, episodes.documents), episodes.actions)
        policy = log_policy.exp() * episodes.actions
        next_value = episodes.next(self._next_soft_values(episodes, states, policy, log_policy))
        q, q_of_actions = self.q_values(episodes, states)
        least_q = torch.stack(q_of_actions).detach().amin(dim=0)
        actor_loss = (policy * (self.entropy.weight * log_policy - least_q)).sum(dim=1)
        return Losses(
            minimised={
                "critic_loss": self.squared_error(episodes, q, next_value),
                **self.critic_terms(episodes, q_of_actions),
                "actor_loss": episodes.mean(actor_loss),
            },
            watched={
                "q": episodes.mean(q[0].detach()),
                "entropy": share_of_uniform_entropy(policy, log_policy, episodes),
                "entropy_weight": self.entropy.weight.clone(),
            },
            log_likelihood=self.click_likelihood(episodes, q, next_value),
            weights={"entropy": uniform_entropy(episodes)},
        )

    def q_values(self, episodes: Episodes, states: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """[K, B] Q(s, a) of the logged actions and [K, N, B] of all actions, the latter without a gradient."""
        with torch.no_grad():
            q_of_actions = [critic.remaining(states, episodes.documents) for critic in self.critics]
        return [critic(states, episodes.logged_documents) for critic in self.critics], q_of_actions

    def critic_terms(self, episodes: Episodes, q_of_actions: Sequence[Tensor]) -> dict[str, Tensor]:
        """Further losses of the critics, by name: none."""
        return {}

    def after_step(self, losses: Losses) -> None:
        """Update the target networks, and the entropy weight if it is automatic."""
        super().after_step(losses)
        if self.config.entropy_weight == "automatic":
            missing = self.config.target_entropy - losses.watched["entropy"]
            self.entropy.weight *= (self.config.entropy_learning_rate * missing).exp()

    def live_policy(self) -> SequentialPolicy:
        """Ranks greedily by the actor."""
        return self.greedy_policy(self.actor)

    @torch.no_grad()
    def _next_soft_values(self, episodes: Episodes, states: Tensor, policy: Tensor, log_policy: Tensor) -> Tensor:
        """[K − 1, B] V(s) = Σ_a π(a | s) [min_i Q′_i(s, a) − w log π(a | s)] of the states after the first."""
        q = [target.remaining(states[1:], episodes.documents[1:]) for target in self.targets]
        soft_q = torch.stack(q).amin(dim=0) - self.entropy.weight * log_policy[1:, 1:]
        return (policy[1:, 1:] * soft_q).sum(dim=1)


class EntropyWeight(nn.Module):
    """The weight of the entropy, saved with the networks.

    The weight itself is stored and updated by w ← w · exp(η (target − entropy)), which is gradient descent on its
    logarithm.
    """

    weight: Tensor

    def __init__(self, weight: float) -> None:
        super().__init__()
        self.register_buffer("weight", torch.tensor(weight))


@torch.no_grad()
def share_of_uniform_entropy(policy: Tensor, log_policy: Tensor, episodes: Episodes) -> Tensor:
    """The entropy of the policy divided by that of a uniform one, both summed over all steps; 1 if there are none.

    Each list is weighted by its number of sessions, as in the losses.
    """
    entropy = -(policy * log_policy * episodes.weight).sum()
    highest = uniform_entropy(episodes)
    return torch.where(highest > 0, entropy / highest, 1.0)


def uniform_entropy(episodes: Episodes) -> Tensor:
    """[] the entropy of a uniform policy, summed over all steps, each list by its weight."""
    return (episodes.actions.sum(dim=1).clamp(min=1).log() * episodes.weight).sum()
