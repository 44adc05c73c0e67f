"""The base class of learners that grow trees on a sample of the sessions."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt
import torch

from cuolr.config import Range, check_ranges
from cuolr.learners.rankers.base_ranker import BaseRanker
from cuolr.learners.rankers.ranker_steps import RankerSteps
from cuolr.logs.page_positions import at_page_positions
from cuolr.policies.policy import RankingPolicy
from cuolr.training.base_learner import FitTask, Learner
from cuolr.training.batches import Batches, SessionBatch, WeightedLists
from cuolr.types import Floats, Ints


@dataclass(frozen=True)
class TreeConfig:
    """Settings of every tree learner. A training step grows one tree.

    Attributes:
        leaves: Maximum number of leaves per tree.
        learning_rate: Shrinkage of each tree.
        position_bias: Whether to correct for position bias.
        max_documents: Maximum number of training documents; if exceeded, sessions are subsampled.
        threads: Number of threads.
    """

    leaves: Annotated[int, Range(2, 100_000)] = 31
    learning_rate: Annotated[float, Range(1e-9, 1)] = 0.05
    position_bias: bool = False
    max_documents: Annotated[int, Range(1_000, 100_000_000)] = 300_000
    threads: Annotated[int, Range(1, 1_000)] = 2

    def __post_init__(self) -> None:
        check_ranges(self)


@dataclass(frozen=True)
class ShownDocuments:
    """The shown documents of a sample of sessions, session after session.

    Attributes:
        features: [n, F] the scaled features.
        rewards: [n] 0 or 1 for clicks, any number from 0 up for rewards.
        position: [n] the position of each document, from 0.
        sizes: [number of sessions] the number of documents of each session.
    """

    features: Floats
    rewards: Floats
    position: npt.NDArray[np.int32]
    sizes: Ints

    @classmethod
    def of(cls, batches: Iterable[SessionBatch]) -> "ShownDocuments":
        """The shown documents of these batches; empty sessions are left out."""
        parts = list(batches)
        where = torch.cat([batch.where for batch in parts])
        sizes = where.sum(dim=1)
        return cls(
            features=torch.cat([batch.features[batch.where] for batch in parts]).numpy(),
            rewards=torch.cat([batch.rewards[batch.where] for batch in parts]).numpy(),
            position=where.nonzero()[:, 1].numpy().astype(np.int32),
            sizes=sizes[sizes > 0].numpy(),
        )


class TreeLearner(Learner):
    """Samples the sessions, and grows one tree on the sample in each step."""

    config: TreeConfig
    role = "baseline"
    log_form = "sessions"

    def fit(self, task: FitTask) -> RankingPolicy:
        """Sample the sessions, then grow trees step by step."""
        batches, held_out = task.batches(WeightedLists.of(at_page_positions(task.log)))
        documents = ShownDocuments.of(sample(batches, self.config.max_documents))
        return task.loop.run(RankerSteps(self.ranker(documents, task), held_out))

    @abstractmethod
    def ranker(self, documents: ShownDocuments, task: FitTask) -> BaseRanker:
        """A ranker without trees, or with those of the model to start from, to be trained on these documents."""


def sample(batches: Batches, max_documents: int) -> Iterator[SessionBatch]:
    """Batches of distinct sessions in random order, with at most `max_documents` shown documents in total."""
    sessions, documents = len(batches), 0
    for step in range(-(-sessions // batches.batch_size)):
        batch = batches.at(step)
        # The last batch continues into the next epoch.
        shown = batch.where[: sessions - step * batches.batch_size].sum(dim=1).cumsum(dim=0) + documents
        fitting = int((shown <= max_documents).sum())
        yield SessionBatch(
            batch.features[:fitting], batch.rewards[:fitting], batch.where[:fitting], batch.weight[:fitting]
        )
        if fitting < len(batch.where):
            return
        documents = int(shown[-1])
