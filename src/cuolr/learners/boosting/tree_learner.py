"""The base class of learners that grow trees on the lists of a log, or on a sample of its sessions."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt
import torch

from cuolr.config import Range, check_ranges
from cuolr.learners.rankers.base_ranker import BaseRanker, RankerSteps
from cuolr.logs.aggregate import aggregate
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
        aggregate: Whether all sessions of a list are one query, with their mean clicks as grades and their number as
            weight; otherwise each session is a query.
        max_documents: Maximum number of training documents; if exceeded, lists or sessions are subsampled.
        threads: Number of threads.
    """

    leaves: Annotated[int, Range(2, 100_000)] = 31
    learning_rate: Annotated[float, Range(1e-9, 1)] = 0.05
    position_bias: bool = False
    aggregate: bool = True
    # 1.6 GB of features, if there are 136; reached if hardly any two sessions show the same list.
    max_documents: Annotated[int, Range(1_000, 100_000_000)] = 3_000_000
    threads: Annotated[int, Range(1, 1_000)] = 2

    def __post_init__(self) -> None:
        check_ranges(self)

    @property
    def without_effect(self) -> frozenset[str]:
        """See `to_dict`; sessions were always sampled before there was a choice, and results do not record it."""
        return frozenset() if self.aggregate else frozenset({"aggregate"})


@dataclass(frozen=True)
class ShownDocuments:
    """The shown documents of lists, aggregated or one for each session, list after list.

    Attributes:
        features: [n, F] the scaled features.
        rewards: [n] 0 or 1 for clicks, any number from 0 up for rewards; the mean over the sessions of a list.
        position: [n] the position of each document, from 0.
        sizes: [number of lists] the number of documents of each list.
        weight: [number of lists] the number of sessions of each list, relative to the mean.
    """

    features: Floats
    rewards: Floats
    position: npt.NDArray[np.int32]
    sizes: Ints
    weight: Floats

    @classmethod
    def of(cls, batches: Iterable[SessionBatch]) -> "ShownDocuments":
        """The shown documents of these batches; empty lists are left out."""
        parts = list(batches)
        where = torch.cat([batch.where for batch in parts])
        sizes = where.sum(dim=1)
        return cls(
            features=torch.cat([batch.features[batch.where] for batch in parts]).numpy(),
            rewards=torch.cat([batch.rewards[batch.where] for batch in parts]).numpy(),
            position=where.nonzero()[:, 1].numpy().astype(np.int32),
            sizes=sizes[sizes > 0].numpy(),
            weight=torch.cat([batch.weight for batch in parts])[sizes > 0].numpy(),
        )


class TreeLearner(Learner):
    """Grows one tree in each step, on all lists of the log, or on a sample of its sessions."""

    config: TreeConfig
    role = "baseline"
    log_form = "sessions"

    def fit(self, task: FitTask) -> RankingPolicy:
        """Aggregate or sample the sessions, then grow trees step by step."""
        log = at_page_positions(task.log)
        batches, held_out = task.batches(WeightedLists.of(aggregate(log) if self.config.aggregate else log))
        documents = ShownDocuments.of(sample(batches, self.config.max_documents))
        return task.loop.run(RankerSteps(self.ranker(documents, task), held_out))

    @abstractmethod
    def ranker(self, documents: ShownDocuments, task: FitTask) -> BaseRanker:
        """A ranker without trees, or with those of the model to start from, to be trained on these documents."""


def sample(batches: Batches, max_documents: int) -> Iterator[SessionBatch]:
    """Batches of distinct lists in random order, with at most `max_documents` shown documents in total."""
    lists, documents = len(batches), 0
    for step in range(-(-lists // batches.batch_size)):
        batch = batches.at(step)
        # The last batch continues into the next epoch.
        shown = batch.where[: lists - step * batches.batch_size].sum(dim=1).cumsum(dim=0) + documents
        fitting = int((shown <= max_documents).sum())
        yield SessionBatch(
            batch.features[:fitting], batch.rewards[:fitting], batch.where[:fitting], batch.weight[:fitting]
        )
        if fitting < len(batch.where):
            return
        documents = int(shown[-1])
