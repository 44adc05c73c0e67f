"""`dla`: dual learning algorithm, which learns a ranker and examination jointly from clicks."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch
from torch import Tensor, nn

from cuolr.config import Range
from cuolr.learners.counterfactual.joint import JointLearner
from cuolr.learners.rankers.losses import softmax_loss
from cuolr.learners.rankers.network import NetworkConfig
from cuolr.networks.layers import DocumentNetwork
from cuolr.networks.masked import log_softmax
from cuolr.training.base_learner import LEARNERS, SearchSpace
from cuolr.training.batches import SessionBatch


@dataclass(frozen=True)
class DlaConfig(NetworkConfig):
    """Settings of DLA, in addition to those of `NetworkConfig`.

    Attributes:
        examination_model: Model of examination: one logit per position (`free`), or a network on the one-hot position
            with the ranker's hidden layers (`network`).
        examination_learning_rate: Learning rate of the examination model.
        max_weight: Upper limit on the weight of a click, in both losses.
    """

    examination_model: Literal["free", "network"] = "free"
    examination_learning_rate: Annotated[float, Range(0, 1)] = 1e-2
    max_weight: Annotated[float, Range(1)] = 100.0


@LEARNERS.register("dla")
class DLA(JointLearner):
    """Two list-wise softmax losses, each weighted by the output of the other network, relative to position 1.

    With s the scores of the documents and e the logits of the positions: −Σ_k c_k·exp(e_1 − e_k)·log softmax(s)_k for
    the ranker, and −Σ_k c_k·exp(s_1 − s_k)·log softmax(e)_k for examination. No gradient flows through the weights.
    If the log has rewards, they are c: their mean is examination times a rate of the document, as that of clicks is.

    Ai et al. 2018, "Unbiased learning to rank with unbiased propensity estimation".
    """

    Config = DlaConfig
    config: DlaConfig
    search_space: ClassVar[SearchSpace] = {
        "learner.learning_rate": (1e-4, 3e-4, 1e-3, 3e-3),
        "learner.examination_learning_rate": (1e-3, 1e-2, 3e-2),
        "training.batch_size": (64, 256),
    }

    def build_networks(self, k: int) -> dict[str, tuple[nn.Module, float]]:
        """The examination model."""
        self.examination = FreeLogits(k) if self.config.examination_model == "free" else PositionNetwork(k, self.config)
        return {"examination": (self.examination, self.config.examination_learning_rate)}

    def losses(self, batch: SessionBatch) -> dict[str, Tensor]:
        """The loss of the ranker and that of the examination model."""
        scores = self.ranker(batch.features)
        logits = self._logits(batch)
        ranked = batch.rewards * inverse_ratio(logits, self.config.max_weight)
        examined = batch.rewards * inverse_ratio(scores, self.config.max_weight)
        return {
            "ranking_loss": softmax_loss(scores, ranked, batch.where),
            "examination_loss": softmax_loss(logits, examined, batch.where),
        }

    @torch.no_grad()
    def held_out_scores(self, batch: SessionBatch) -> Tensor:
        """[B] Σ_k c_k log softmax(s + e)_k: how well both models together explain where clicks fall."""
        both = self.ranker(batch.features) + self._logits(batch)
        return (batch.rewards * log_softmax(both, batch.where)).sum(dim=1)

    def _logits(self, batch: SessionBatch) -> Tensor:
        """[B, K] the logits of the positions."""
        logits: Tensor = self.examination()
        return logits[: batch.rewards.shape[1]].expand_as(batch.rewards)


def inverse_ratio(logits: Tensor, max_weight: float) -> Tensor:
    """[B, K] exp(x_1 − x_k), at most `max_weight`, without gradient.

    >>> inverse_ratio(torch.tensor([[0.0, -1.0, -1000.0]]), max_weight=10)
    tensor([[ 1.0000,  2.7183, 10.0000]])
    """
    logits = logits.detach()
    return (logits[:, :1] - logits).exp().clamp(max=max_weight)


class FreeLogits(nn.Module):
    """One logit per position, initially 0."""

    def __init__(self, k: int) -> None:
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(k))

    def forward(self) -> Tensor:
        """[K] the logits."""
        return self.logits


class PositionNetwork(nn.Module):
    """Logits of the positions from a network on the one-hot position, as in appendix A of the paper."""

    def __init__(self, k: int, config: DlaConfig) -> None:
        super().__init__()
        self.network = DocumentNetwork(k, config.hidden)

    def forward(self) -> Tensor:
        """[K] the logits."""
        logits: Tensor = self.network(torch.eye(self.network.n_features))
        return logits
