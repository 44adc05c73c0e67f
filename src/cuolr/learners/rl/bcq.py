"""`bcq`: batch-constrained Q-learning over the documents that the logging policy is likely to place."""

from dataclasses import dataclass
from typing import Annotated

from torch import Tensor, nn

from cuolr.config import Range
from cuolr.learners.rl.dqn import DQN, DqnConfig
from cuolr.learners.rl.mdp import Episodes
from cuolr.networks.layers import log_softmax
from cuolr.policies.sequential_policy import SequentialPolicy, likely
from cuolr.training.base_learner import LEARNERS


@dataclass(frozen=True)
class BcqConfig(DqnConfig):
    """Settings of BCQ, in addition to those of `DqnConfig`.

    Attributes:
        behaviour_learning_rate: Learning rate of the model of the logging policy.
        threshold: Minimum probability of a document under the logging policy, relative to the most probable one;
            0 = DQN, 1 = behaviour cloning.
    """

    behaviour_learning_rate: Annotated[float, Range(0, 1)] = 1e-4
    threshold: Annotated[float, Range(0, 1)] = 0.3


@LEARNERS.register("bcq")
class BCQ(DQN):
    """Double DQN restricted to actions with G(a | s) ≥ threshold · max_a′ G(a′ | s), Fujimoto et al. 2019b.

    G, the model of the logging policy, is trained on the logged actions with cross-entropy.
    """

    Config = BcqConfig
    config: BcqConfig

    def build_networks(self) -> dict[str, tuple[nn.Module, float]]:
        """The critic, and the model of the logging policy."""
        self.behaviour = self.pair_network()
        return {"behaviour": (self.behaviour, self.config.behaviour_learning_rate), **super().build_networks()}

    def consider(self, episodes: Episodes, states: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """The actions that the logging policy is likely to take, and the cross-entropy of its model."""
        scores = self.behaviour.remaining(states, episodes.documents)
        log_likelihood = episodes.logged(log_softmax(scores, episodes.actions))
        considered = likely(scores.detach(), episodes.actions, self.config.threshold, dim=1)
        return considered, {"behaviour_loss": -episodes.mean(log_likelihood)}

    def live_policy(self) -> SequentialPolicy:
        """Ranks greedily by the critic, among the actions that the logging policy is likely to take."""
        return self.greedy_policy(self.critics[0], behaviour=self.behaviour, threshold=self.config.threshold)
