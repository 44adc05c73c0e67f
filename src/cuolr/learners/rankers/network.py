"""A network that scores each document independently, trained with the list-wise softmax loss."""

import copy
import math
from dataclasses import dataclass
from typing import Annotated, Any

import torch
from torch import nn

from cuolr.config import Range, check_ranges
from cuolr.data.normalise import Normaliser
from cuolr.learners.rankers.base_ranker import BaseRanker, softmax_loss
from cuolr.learners.rankers.targets import BatchOf, Targets
from cuolr.networks.layers import DocumentNetwork
from cuolr.policies.network_policy import NetworkPolicy
from cuolr.training import distributed
from cuolr.training.steps import NonFiniteLossError
from cuolr.types import Doubles, Floats

# Documents whose hidden layers are kept at a time, about: the gradient of more is added up part by part.
DOCUMENTS_AT_A_TIME = 1 << 12


@dataclass(frozen=True)
class NetworkConfig:
    """Settings of a network ranker.

    Attributes:
        hidden: Sizes of the hidden layers of the ranker.
        learning_rate: Learning rate of the ranker.
        max_gradient_norm: Norm to which gradients are clipped; none = no clipping.
    """

    hidden: tuple[Annotated[int, Range(1)], ...] = (256, 256)
    learning_rate: Annotated[float, Range(0, 1)] = 1e-4
    max_gradient_norm: Annotated[float, Range(above=0)] | None = 1.0

    def __post_init__(self) -> None:
        check_ranges(self)


class NetworkRanker(BaseRanker):
    """Minimises the mean of −Σ_k y_k log softmax(s)_k over weighted lists, by Adam.

    Batches are drawn from a table of targets (`TargetSampler`) or come from a log (`training.batches`). Processes that
    share a batch all take the same step: that of one process with the whole batch.

    Attributes:
        network: The network that scores scaled documents.
    """

    def __init__(self, n_features: int, config: NetworkConfig, normaliser: Normaliser, batch_of: BatchOf) -> None:
        """Create a ranker with random weights, from torch's current random state.

        Args:
            n_features: F, the number of scaled features of a document, with the indicators of missing values.
            config: Settings of the ranker.
            normaliser: The normaliser that scaled the features, kept in the policy.
            batch_of: Returns the batch of each step.
        """
        self.network = DocumentNetwork(n_features, config.hidden)
        self._optimiser = torch.optim.Adam(self.network.parameters(), lr=config.learning_rate, foreach=True)
        self._max_gradient_norm = config.max_gradient_norm
        self._normaliser = normaliser
        self._batch_of = batch_of
        self._step = 0

    def step(self) -> dict[str, float]:
        """Take a gradient step on the next batch; returns its loss."""
        loss = self.descend(self._batch_of(self._step))
        self._step += 1
        return {"loss": loss}

    def descend(self, batch: Targets) -> float:
        """Take a gradient step on a batch, or this process's part of it; returns the mean loss of the whole batch."""
        share = distributed.share(torch.tensor(float(len(batch))))
        self._optimiser.zero_grad()
        total = torch.zeros(())
        for part in batch.parts(DOCUMENTS_AT_A_TIME):
            losses = softmax_loss(part.scores(self.network), part.target, part.where)
            loss = (losses * part.weight).sum() / len(batch)
            torch.autograd.backward([loss], [share])
            total += loss.detach()
        value = float(distributed.total(total * share))
        if not math.isfinite(value):
            raise NonFiniteLossError("ranking_loss")
        distributed.add_gradients(self.network.parameters())
        if self._max_gradient_norm is not None:
            nn.utils.clip_grad_norm_(self.network.parameters(), self._max_gradient_norm)
        self._optimiser.step()
        return value

    @torch.no_grad()
    def score(self, features: Floats) -> Doubles:
        """[n] the network's output."""
        scores: Doubles = self.network.in_parts(torch.from_numpy(features)).double().numpy()
        return scores

    def policy(self) -> NetworkPolicy:
        """A copy of the network, as a policy."""
        return NetworkPolicy(self.network, self._normaliser).snapshot()

    def state(self) -> dict[str, Any]:
        """The network, the optimiser, and the number of steps taken."""
        networks = {"network": self.network.state_dict(), "optimiser": self._optimiser.state_dict()}
        return {"step": self._step, **copy.deepcopy(networks)}

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from `state`."""
        self.network.load_state_dict(state["network"])
        self._optimiser.load_state_dict(copy.deepcopy(state["optimiser"]))
        self._step = state["step"]
