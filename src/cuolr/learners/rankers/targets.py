"""Weighted list-wise targets: what a ranker fits."""

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
        features: [B, N, F] scaled.
        target: [B, N] higher = better; 0 where there is no document.
        where: [B, N] true = a document.
        weight: [B] of each list in the mean loss.
    """

    features: Tensor
    target: Tensor
    where: Tensor
    weight: Tensor


@dataclass(frozen=True)
class Targets:
    """R lists of at most N documents; features are held once for each document.

    Attributes:
        features: [n + 1, F] scaled; the last row, for padding, is 0.
        documents: [R, N] the row in `features` of each document; n where there is none.
        where: [R, N] true = a document.
        target: [R, N] higher = better; 0 where there is no document.
        weight: [R] of each list in the mean loss.
    """

    features: Tensor
    documents: Tensor
    where: Tensor
    target: Tensor
    weight: Tensor

    def __len__(self) -> int:
        """R."""
        return len(self.where)

    def select(self, rows: Ints) -> Self:
        """These lists alone; features are shared."""
        columns = (self.documents[rows], self.where[rows], self.target[rows], self.weight[rows])
        return type(self)(self.features, *columns)

    def batch(self, rows: Ints) -> TargetBatch:
        """These lists with the features of their documents."""
        return TargetBatch(self.features[self.documents[rows]], self.target[rows], self.where[rows], self.weight[rows])


# Gives the batch of a step, from 0.
BatchOf: TypeAlias = Callable[[int], TargetBatch]


def batches_of_targets(batches: Batches) -> BatchOf:
    """Batches of a log as targets; of each, this process's part."""

    def batch_of(step: int) -> TargetBatch:
        batch = batches.at(step, distributed.part_of(batches.batch_size))
        return TargetBatch(batch.features, batch.clicks, batch.where, batch.weight)

    return batch_of


@dataclass(frozen=True)
class TargetSampler:
    """Random batches of targets, with replacement; a batch is a function of the seed, the stream and the step alone.

    Attributes:
        targets: The lists.
        rows: The lists to draw from.
        batch_size: B.
        seed: Of the batches.
        stream: Samplers of other streams draw other lists.
    """

    targets: Targets
    rows: Ints
    batch_size: int
    seed: int
    stream: int = 0

    def __call__(self, step: int) -> TargetBatch:
        """The batch of a step, from 0."""
        rng = np.random.default_rng((self.seed, step, self.stream))
        return self.targets.batch(rng.choice(self.rows, self.batch_size))
