"""What the learners share that grow trees on a sample of the sessions."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt
import torch

from cuolr.config import Range, check_ranges
from cuolr.data.normalise import Normaliser
from cuolr.learners.rankers.base_ranker import BaseRanker
from cuolr.learners.rankers.ranker_steps import RankerSteps
from cuolr.policies.policy import RankingPolicy
from cuolr.training.base_learner import FitTask, Learner
from cuolr.training.batches import Batches, SessionBatch, WeightedLists
from cuolr.types import Floats, Ints


@dataclass(frozen=True)
class TreeConfig:
    """Settings of every learner of trees. A step of training is one more tree.

    Attributes:
        leaves: Per tree, at most.
        learning_rate: Shrinkage of each tree.
        position_bias: Whether to correct for the position at which a document was shown.
        max_documents: Shown documents to learn from, at most; a random sample of the sessions.
        threads: How many to use.
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
    """The documents of a sample of sessions, one after the other.

    Attributes:
        features: [n, F] scaled.
        clicks: [n] 0 or 1.
        position: [n] from 0.
        sizes: [number of sessions] documents of each.
    """

    features: Floats
    clicks: npt.NDArray[np.int8]
    position: npt.NDArray[np.int32]
    sizes: Ints

    @classmethod
    def of(cls, batches: Iterable[SessionBatch]) -> "ShownDocuments":
        """All that is shown in these batches; sessions without a document are left out."""
        parts = list(batches)
        where = torch.cat([batch.where for batch in parts])
        sizes = where.sum(dim=1)
        return cls(
            features=torch.cat([batch.features[batch.where] for batch in parts]).numpy(),
            clicks=torch.cat([batch.clicks[batch.where] for batch in parts]).numpy().astype(np.int8),
            position=where.nonzero()[:, 1].numpy().astype(np.int32),
            sizes=sizes[sizes > 0].numpy(),
        )


class TreeLearner(Learner):
    """Draws a sample of the sessions, and grows a tree on it in each step."""

    config: TreeConfig
    role = "baseline"
    log_form = "sessions"

    def fit(self, task: FitTask) -> RankingPolicy:
        """Draw the sample, and grow trees step by step."""
        batches, held_out = task.batches(WeightedLists.of(task.log))
        documents = ShownDocuments.of(sample(batches, self.config.max_documents))
        return task.loop.run(RankerSteps(self.ranker(documents, task.config.seed, task.normaliser), held_out))

    @abstractmethod
    def ranker(self, documents: ShownDocuments, seed: int, normaliser: Normaliser) -> BaseRanker:
        """A ranker without a tree, to be grown on these documents."""


def sample(batches: Batches, max_documents: int) -> Iterator[SessionBatch]:
    """Batches of different sessions, in random order, with so many shown documents together at most."""
    sessions, documents = len(batches), 0
    for step in range(-(-sessions // batches.batch_size)):
        batch = batches.at(step)
        # The last batch continues into the next epoch.
        shown = batch.where[: sessions - step * batches.batch_size].sum(dim=1).cumsum(dim=0) + documents
        fitting = int((shown <= max_documents).sum())
        yield SessionBatch(
            batch.features[:fitting], batch.clicks[:fitting], batch.where[:fitting], batch.weight[:fitting]
        )
        if fitting < len(batch.where):
            return
        documents = int(shown[-1])
