"""`bc`: behaviour cloning of the logging policy."""

from dataclasses import dataclass
from typing import Annotated

from torch import nn

from cuolr.config import Range
from cuolr.learners.rl.mdp import Episodes
from cuolr.learners.rl.sequential import Losses, SequentialConfig, SequentialLearner
from cuolr.networks.layers import log_softmax
from cuolr.policies.sequential_policy import SequentialPolicy
from cuolr.training.base_learner import LEARNERS


@dataclass(frozen=True)
class BcConfig(SequentialConfig):
    """Settings of behaviour cloning, in addition to those of `SequentialConfig`.

    Attributes:
        actor_learning_rate: Learning rate of the actor.
    """

    actor_learning_rate: Annotated[float, Range(0, 1)] = 1e-4


@LEARNERS.register("bc")
class BC(SequentialLearner):
    """Learns which of the remaining documents the logging policy places next; clicks are ignored."""

    Config = BcConfig
    config: BcConfig

    def build_networks(self) -> dict[str, tuple[nn.Module, float]]:
        """The actor."""
        self.actor = self.pair_network()
        return {"actor": (self.actor, self.config.actor_learning_rate)}

    def losses(self, episodes: Episodes) -> Losses:
        """The cross-entropy −E[log π(a_logged | s)]."""
        scores = self.actor.remaining(self.states(episodes), episodes.documents)
        log_likelihood = episodes.logged(log_softmax(scores, episodes.actions))
        return Losses({"actor_loss": -episodes.mean(log_likelihood)}, {}, log_likelihood)

    def live_policy(self) -> SequentialPolicy:
        """Ranks greedily by the actor."""
        return self.greedy_policy(self.actor)
