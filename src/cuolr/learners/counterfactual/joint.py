"""The base class of learners that learn a ranker and a model of position bias jointly."""

from abc import abstractmethod

import torch
from torch import Tensor, nn

from cuolr.data.normalise import Normaliser
from cuolr.learners.gradient_learner import GradientLearner
from cuolr.learners.rankers.network import NetworkConfig
from cuolr.logs.page_positions import at_page_positions
from cuolr.networks.layers import DocumentNetwork, seeded
from cuolr.policies.network_policy import NetworkPolicy
from cuolr.training.base_learner import FitTask
from cuolr.training.batches import SessionBatch, WeightedLists
from cuolr.training.warm_start import WarmStart


class JointLearner(GradientLearner):
    """Learns a network ranker jointly with a subclass's model of position bias, from the subclass's losses."""

    config: NetworkConfig
    role = "baseline"
    cold_start = ""

    def build(self, n_features: int, k: int, seed: int, normaliser: Normaliser) -> None:
        """Create the ranker, and the networks of the subclass."""
        self._normaliser = normaliser
        with seeded(seed):
            self.ranker = DocumentNetwork(n_features, self.config.hidden)
            networks = {"ranker": (self.ranker, self.config.learning_rate), **self.build_networks(k)}
        self.learn_with(networks, self.config.max_gradient_norm)

    def weighted_lists(self, task: FitTask) -> WeightedLists:
        """The lists by position on the page, whose bias is learned."""
        return WeightedLists.of(at_page_positions(task.log))

    @abstractmethod
    def build_networks(self, k: int) -> dict[str, tuple[nn.Module, float]]:
        """Create the other networks, for lists of `k` positions; returns each by name, with its learning rate."""

    @abstractmethod
    def losses(self, batch: SessionBatch) -> dict[str, Tensor]:
        """The losses to minimise, by name: [B] each."""

    def update(self, batch: SessionBatch) -> dict[str, float]:
        """Take one step on the mean of the losses over sessions."""
        losses = {name: (loss * batch.weight).mean() for name, loss in self.losses(batch).items()}
        return self.descend(losses, torch.tensor(len(batch.weight)))

    @torch.no_grad()
    def held_out_scores(self, batch: SessionBatch) -> Tensor:
        """[B] the negative sum of the losses."""
        return -torch.stack(list(self.losses(batch).values())).sum(dim=0)

    def policy(self) -> NetworkPolicy:
        """A copy of the ranker, which later steps do not change."""
        return self._live_policy().snapshot()

    def start_from(self, start: WarmStart) -> None:
        """Take over the ranker of a trained model and, from its checkpoint, the model of position bias."""
        self.take_over(start, self._live_policy().networks())

    def _live_policy(self) -> NetworkPolicy:
        return NetworkPolicy(self.ranker, self._normaliser)
