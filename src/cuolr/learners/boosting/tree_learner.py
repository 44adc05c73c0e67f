"""What the learners share that grow trees on a sample of the sessions, all of which they need at once."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from cuolr.data.normalise import Normaliser
from cuolr.learners.counterfactual.listwise import softmax_loss
from cuolr.learners.gradient import expect
from cuolr.training.base_learner import Learner
from cuolr.training.batches import Batches, SessionBatch
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

    leaves: int = 31
    learning_rate: float = 0.05
    position_bias: bool = False
    max_documents: int = 300_000
    threads: int = 2

    def __post_init__(self) -> None:
        expect(
            self,
            leaves=(2, 100_000),
            learning_rate=(1e-9, 1),
            max_documents=(1_000, 100_000_000),
            threads=(1, 1_000),
        )


@dataclass(frozen=True)
class ShownDocuments:
    """The documents of some sessions, one after the other.

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
    """Takes a sample of the sessions at the start, and grows a tree on it in each step.

    Without `begin`, the first batch is the sample.
    """

    config: TreeConfig
    needs_sessions = True
    learns_by_batch = False

    def __init__(self, config: Any, n_features: int, k: int, seed: int, normaliser: Normaliser) -> None:
        self.config = config
        self.n_features = n_features
        self.seed = seed
        self.normaliser = normaliser
        self.trees = 0
        self._started = False

    @abstractmethod
    def start(self, documents: ShownDocuments) -> None:
        """Make ready to grow trees on these documents."""

    @abstractmethod
    def grow(self) -> None:
        """One more tree."""

    @abstractmethod
    def scores(self, features: Floats) -> Floats:
        """[n] of scaled documents [n, F]."""

    def begin(self, batches: Batches) -> None:
        """Draw the sample."""
        self._start(sample(batches, self.config.max_documents))

    def update(self, batch: SessionBatch) -> dict[str, float]:
        """Grow one more tree on the sample; the batch does not matter."""
        self._start([batch])
        self.grow()
        self.trees += 1
        return {"trees": self.trees}

    def held_out_score(self, batch: SessionBatch) -> Tensor:
        """[B] Σ_k c_k log softmax(s)_k."""
        scores = torch.zeros(batch.where.shape)
        scores[batch.where] = torch.from_numpy(self.scores(batch.features[batch.where].numpy()))
        return -softmax_loss(scores, batch.clicks, batch.where)

    def state(self) -> dict[str, Any]:
        """The number of trees: the sample and the seed decide all else."""
        return {"trees": self.trees}

    def load_state(self, state: dict[str, Any]) -> None:
        """Grow the trees anew, on the sample that was drawn in `begin`."""
        for _ in range(state["trees"] - self.trees):
            self.grow()
        self.trees = state["trees"]

    def _start(self, batches: Iterable[SessionBatch]) -> None:
        if not self._started:
            self.start(ShownDocuments.of(batches))
            self._started = True


def sample(batches: Batches, max_documents: int) -> Iterator[SessionBatch]:
    """Batches of different sessions, in random order, with so many shown documents together at most."""
    sessions, documents = len(batches), 0
    for step in range(-(-sessions // batches.batch_size)):
        batch = batches.at(step)
        # The last batch goes on into the next epoch.
        shown = batch.where[: sessions - step * batches.batch_size].sum(dim=1).cumsum(dim=0) + documents
        fitting = int((shown <= max_documents).sum())
        yield SessionBatch(
            batch.features[:fitting], batch.clicks[:fitting], batch.where[:fitting], batch.weight[:fitting]
        )
        if fitting < len(batch.where):
            return
        documents = int(shown[-1])
