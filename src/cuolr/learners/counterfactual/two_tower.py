"""`two-tower`: additive two-tower model; the logit of a click is the document's score plus the position's bias."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from cuolr.config import Range
from cuolr.learners.counterfactual.joint import JointLearner
from cuolr.learners.rankers.network import NetworkConfig
from cuolr.training.base_learner import LEARNERS, SearchSpace
from cuolr.training.batches import SessionBatch


@dataclass(frozen=True)
class TwoTowerConfig(NetworkConfig):
    """Settings of the two-tower model, in addition to those of `NetworkConfig`.

    Attributes:
        position_learning_rate: Learning rate of the position biases.
    """

    position_learning_rate: Annotated[float, Range(0, 1)] = 1e-2


@LEARNERS.register("two-tower")
class TwoTower(JointLearner):
    """Cross-entropy of clicks with P(C_k = 1) = sigmoid(s(d_k) + b_k); documents are ranked by s.

    Guo et al. 2019, "PAL: a position-bias aware learning framework"; Yan et al. 2022, "Revisiting two-tower models for
    unbiased learning to rank".

    Rewards r up to 1, the mean reward of a click, are fractions of a click: −r·log p − (1 − r)·log(1 − p), whose
    minimum is at p = E[r]. Larger ones are clicks with the weight r: −r·log p.
    """

    Config = TwoTowerConfig
    config: TwoTowerConfig
    search_space: ClassVar[SearchSpace] = {
        "learner.learning_rate": (1e-4, 3e-4, 1e-3, 3e-3),
        "learner.position_learning_rate": (1e-3, 1e-2, 3e-2),
        "training.batch_size": (64, 256),
    }

    def build_networks(self, k: int) -> dict[str, tuple[nn.Module, float]]:
        """The bias of each position, initially 0."""
        self.position = nn.ParameterDict({"logits": torch.zeros(k)})
        return {"position": (self.position, self.config.position_learning_rate)}

    def losses(self, batch: SessionBatch) -> dict[str, Tensor]:
        """The cross-entropy, summed over the shown documents."""
        logits = self.ranker(batch.features) + self.position["logits"][: batch.rewards.shape[1]]
        fraction, weight = batch.rewards.clamp(max=1), batch.rewards.clamp(min=1)
        losses = binary_cross_entropy_with_logits(logits, fraction, weight, reduction="none")
        return {"click_loss": losses.masked_fill(~batch.where, 0.0).sum(dim=1)}
