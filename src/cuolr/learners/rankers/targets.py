"""Weighted list-wise targets, to which rankers are fitted."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self, TypeAlias

import numpy as np
from torch import Tensor

from cuolr.training import distributed
from cuolr.training.batches import Batches
from cuolr.types import Ints


@dataclass(frozen=True)
class TargetBatch:
    """B lists with the features of their documents.

    Attributes:
        features: [B, N, F] the scaled features.
        target: [B, N] the targets, higher = better; 0 where there is no document.
        where: [B, N] true = a document.
        weight: [B] the weight of each list in the mean loss.
    """

    features: Tensor
    target: Tensor
    where: Tensor
    weight: Tensor


@dataclass(frozen=True)
class Targets:
    """R lists of at most N documents; the features of each document are stored once.

    Attributes:
        features: [n + 1, F] the scaled features; the last row, for padding, is 0.
        documents: [R, N] the row in `features` of each document; n where there is none.
        where: [R, N] true = a document.
        target: [R, N] the targets, higher = better; 0 where there is no document.
        weight: [R] the weight of each list in the mean loss.
    """

    features: Tensor
    documents: Tensor
    where: Tensor
    target: Tensor
    weight: Tensor

    def __len__(self) -> int:
        """R, the number of lists."""
        return len(self.where)

    def select(self, rows: Ints) -> Self:
        """The targets of these lists; features are shared."""
        columns = (self.documents[rows], self.where[rows], self.target[rows], self.weight[rows])
        return type(self)(self.features, *columns)

    def batch(self, rows: Ints) -> TargetBatch:
        """These lists with the features of their documents."""
        return TargetBatch(self.features[self.documents[rows]], self.target[rows], self.where[rows], self.weight[rows])


# Returns the batch of a step, counted from 0.
BatchOf: TypeAlias = Callable[[int], TargetBatch]


def batches_of_targets(batches: Batches) -> BatchOf:
    """The batches of a log as targets: this process's part of each."""

    def batch_of(step: int) -> TargetBatch:
        batch = batches.at(step, distributed.part_of(batches.batch_size))
        return TargetBatch(batch.features, batch.rewards, batch.where, batch.weight)

    return batch_of


@dataclass(frozen=True)
class TargetSampler:
    """Random batches of targets, drawn with replacement; a batch depends on the seed, the stream and the step only.

    Attributes:
        targets: The lists.
        rows: The lists to draw from.
        batch_size: B, the number of lists in a batch.
        seed: Seed of the batches.
        stream: Samplers with the same seed and different streams draw different lists.
    """

    targets: Targets
    rows: Ints
    batch_size: int
    seed: int
    stream: int = 0

    def __call__(self, step: int) -> TargetBatch:
        """The batch of a step, counted from 0."""
        rng = np.random.default_rng((self.seed, step, self.stream))
        return self.targets.batch(rng.choice(self.rows, self.batch_size))
