"""What the counterfactual learners share: a network that scores each document by itself, and the softmax list loss."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor, nn

from cuolr.config import Range, check_ranges
from cuolr.data.normalise import Normaliser
from cuolr.learners.gradient import LEAST_NORM, GradientLearner
from cuolr.networks.layers import DocumentNetwork, seeded
from cuolr.policies.network_policy import NetworkPolicy
from cuolr.training.batches import SessionBatch


@dataclass(frozen=True)
class ListwiseConfig:
    """Settings of every learner that scores each document by itself.

    Attributes:
        hidden: The sizes of the hidden layers of the ranker.
        learning_rate: Of the ranker.
        max_gradient_norm: The gradient of each network is clipped to this norm; none = as it is.
    """

    hidden: tuple[Annotated[int, Range(1)], ...] = (256, 256)
    learning_rate: Annotated[float, Range(0, 1)] = 1e-4
    max_gradient_norm: Annotated[float, Range(LEAST_NORM)] | None = 1.0

    def __post_init__(self) -> None:
        check_ranges(self)


class ListwiseLearner(GradientLearner):
    """Learns a score of each document from the losses of a subclass."""

    config: ListwiseConfig

    def build(self, n_features: int, k: int, seed: int, normaliser: Normaliser) -> None:
        """A new ranker, and what a subclass has beside it."""
        self._normaliser = normaliser
        with seeded(seed):
            self.ranker = DocumentNetwork(n_features, self.config.hidden)
            networks = {"ranker": (self.ranker, self.config.learning_rate), **self.build_networks(k)}
        self.learn_with(networks, self.config.max_gradient_norm)

    def build_networks(self, k: int) -> dict[str, tuple[nn.Module, float]]:
        """Make the networks beside the ranker, for lists of `k` positions; each by name, with its learning rate."""
        return {}

    @abstractmethod
    def losses(self, batch: SessionBatch) -> dict[str, Tensor]:
        """What the learner minimises, by name: [B] each."""

    def update(self, batch: SessionBatch) -> dict[str, float]:
        """One step on the mean of the losses over sessions."""
        losses = {name: (loss * batch.weight).mean() for name, loss in self.losses(batch).items()}
        return self.descend(losses, torch.tensor(len(batch.weight)))

    @torch.no_grad()
    def held_out_scores(self, batch: SessionBatch) -> Tensor:
        """[B] less the losses."""
        return -torch.stack(list(self.losses(batch).values())).sum(dim=0)

    def policy(self) -> NetworkPolicy:
        """The ranker; later steps do not change it."""
        return NetworkPolicy(self.ranker, self._normaliser).snapshot()
