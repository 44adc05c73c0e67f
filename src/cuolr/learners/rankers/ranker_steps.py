"""Trains a ranker in the training loop."""

from typing import Any

import torch
from torch import Tensor

from cuolr.learners.rankers.base_ranker import BaseRanker
from cuolr.learners.rankers.losses import softmax_loss
from cuolr.policies.policy import ScaledScoringPolicy
from cuolr.training.batches import Batches, SessionBatch
from cuolr.training.steps import Steps


class RankerSteps(Steps):
    """Trains a ranker step by step, and validates it by the softmax loss on held-out lists.

    Attributes:
        ranker: The ranker to train.
    """

    def __init__(self, ranker: BaseRanker, held_out: Batches | None) -> None:
        self.ranker = ranker
        self._held_out = held_out

    def step(self) -> dict[str, float]:
        """Take one step of the ranker."""
        return self.ranker.step()

    def held_out_score(self) -> float:
        """The mean of `held_out_scores` over the held-out sessions."""
        assert self._held_out is not None, "nothing was held out"
        return self._held_out.mean(self.held_out_scores)

    def held_out_scores(self, batch: SessionBatch) -> Tensor:
        """[B] Σ_k r_k log softmax(s)_k of each list."""
        scores = torch.zeros(batch.where.shape)
        if batch.where.any():
            scored = self.ranker.score(batch.features[batch.where].numpy())
            scores[batch.where] = torch.from_numpy(scored).float()
        return -softmax_loss(scores, batch.rewards, batch.where)

    def policy(self) -> ScaledScoringPolicy:
        """The policy of the ranker."""
        return self.ranker.policy()

    def state(self) -> dict[str, Any]:
        """The state of the ranker."""
        return self.ranker.state()

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from `state`."""
        self.ranker.load_state(state)
