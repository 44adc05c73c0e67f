"""The ranking MDP of section 3.2, and logged lists as its episodes."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from cuolr.training.batches import SessionBatch


@dataclass(frozen=True)
class Episodes:
    """B logged lists as episodes of the ranking MDP, one step per position.

    At step t the state is s_t = [(d_0 … d_{t−1}), t]. The actions are the documents that are not placed yet,
    `documents[t:]`. The logged action is document t, the reward is its click, or its reward if the log has rewards, and
    the next state is s_{t+1}: transitions are deterministic. An episode ends with the last document of the list.

    The position is the first axis, so that the remaining documents at step t are contiguous in memory. Each state and
    document is stored once; only pairs (t, j ≥ t) are meaningful.

    Attributes:
        shown: [B, K, F] the logged lists.
        documents: [N, B, F] the logged documents in order, then the unshown ones.
        actions: [K, N, B] true = document j can be placed at step t.
        steps: [K, B] true = the step took place.
        rewards: [K, B] the click of the document that was placed, or its reward in the log.
        weight: [B] the weight of each list.
    """

    shown: Tensor
    documents: Tensor
    actions: Tensor
    steps: Tensor
    rewards: Tensor
    weight: Tensor

    @classmethod
    def of(cls, batch: SessionBatch, with_unshown: bool) -> "Episodes":
        """The lists of a batch; with `with_unshown`, unshown documents can be placed at every step."""
        documents, real = batch.features, batch.where
        if with_unshown:
            assert batch.unshown is not None
            assert batch.unshown_where is not None
            documents = torch.cat([documents, batch.unshown], dim=1)
            real = torch.cat([real, batch.unshown_where], dim=1)
        steps = batch.where.T.contiguous()
        not_placed = steps.new_ones(len(steps), real.shape[1]).triu()
        return cls(
            shown=batch.features,
            documents=documents.transpose(0, 1).contiguous(),
            actions=not_placed[:, :, None] & real.T & steps[:, None],
            steps=steps,
            rewards=batch.rewards.T.contiguous(),
            weight=batch.weight,
        )

    @property
    def logged_documents(self) -> Tensor:
        """[K, B, F] the logged action at each step."""
        return self.documents[: len(self.steps)]

    def logged(self, values: Tensor) -> Tensor:
        """[K, N, B] values of all pairs → [K, B] those of the logged action at each step."""
        return values.diagonal().T

    def next(self, values: Tensor) -> Tensor:
        """[K − 1, B] values of the states after the first → [K, B] V(s′): 0 after the last document of a list."""
        return pad(values.where(self.steps[1:], 0), (0, 0, 0, 1))

    def mean(self, values: Tensor) -> Tensor:
        """[K, B] → [] the mean over the steps that took place, each list weighted by its number of sessions."""
        return (values.where(self.steps, 0) * self.weight).sum() / self.steps.sum().clamp(min=1)

    def mean_per_list(self, values: Tensor) -> Tensor:
        """[K, B] → [B] the mean over the steps of each list; 0 for an empty list."""
        return values.where(self.steps, 0).sum(dim=0) / self.steps.sum(dim=0).clamp(min=1)

    def mean_left(self) -> Tensor:
        """[K, B, F] the mean of the remaining documents at each step; 0 where there is none."""
        real = self.actions.any(dim=0)[:, :, None]
        sums = (self.documents * real).flip(0).cumsum(dim=0).flip(0)[: len(self.steps)]
        return sums / self.actions.sum(dim=1).clamp(min=1)[:, :, None]
