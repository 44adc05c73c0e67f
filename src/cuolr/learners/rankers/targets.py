"""Weighted list-wise targets, to which rankers are fitted."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Self, TypeAlias

import numpy as np
import torch
from torch import Tensor

from cuolr.training import distributed
from cuolr.training.batches import Batches
from cuolr.types import Ints


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

    def select(self, rows: Ints | slice) -> Self:
        """The targets of these lists; features are shared."""
        columns = (self.documents[rows], self.where[rows], self.target[rows], self.weight[rows])
        return type(self)(self.features, *columns)

    def parts(self, documents: int) -> Iterator[Self]:
        """The lists in order, in parts of about so many documents; at least one."""
        sizes = self.where.sum(dim=1)
        _, lists = torch.unique_consecutive((sizes.cumsum(0) - sizes) // documents, return_counts=True)
        for start, end in pairwise([0, *lists.cumsum(0).tolist()]):
            yield self.select(slice(start, end))

    def scores(self, score: Callable[[Tensor], Tensor]) -> Tensor:
        """[R, N] the scores of the documents; 0 where there is none. Cost follows documents, not the longest list.

        Args:
            score: Returns the scores [n] of documents [n, F].
        """
        scores = score(self.features[self.documents[self.where]])
        return scores.new_zeros(self.where.shape).masked_scatter(self.where, scores)


# Returns the lists of a step, counted from 0.
BatchOf: TypeAlias = Callable[[int], Targets]


def batches_of_targets(batches: Batches) -> BatchOf:
    """The batches of a log as targets: this process's part of each."""

    def batch_of(step: int) -> Targets:
        batch = batches.at(step, distributed.part_of(batches.batch_size))
        documents = torch.arange(batch.where.numel()).reshape(batch.where.shape)
        return Targets(batch.features.flatten(0, 1), documents, batch.where, batch.rewards, batch.weight)

    return batch_of


@dataclass(frozen=True)
class TargetSampler:
    """Random batches of targets, drawn with replacement; a batch depends on the seed, the stream and the step only.

    Where there are no more lists than a batch has, every batch is all of them: the gradient is exact, and costs less.

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

    def __call__(self, step: int) -> Targets:
        """The batch of a step, counted from 0."""
        if len(self.rows) <= self.batch_size:
            return self.targets.select(self.rows)
        rng = np.random.default_rng((self.seed, step, self.stream))
        return self.targets.select(rng.choice(self.rows, self.batch_size))
