"""The interface of rankers that are trained step by step, whatever their targets, and what trains them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor

from cuolr.data.normalise import Normaliser
from cuolr.networks.layers import log_softmax
from cuolr.policies.policy import ScaledScoringPolicy
from cuolr.policies.regression_trees import RegressionTrees, require_room_for_a_tree
from cuolr.policies.trees_policy import TreesPolicy
from cuolr.training.batches import Batches, SessionBatch
from cuolr.training.steps import Steps
from cuolr.types import Doubles, Floats

Result = TypeVar("Result")


class ScoringRanker(Protocol):
    """A member of an ensemble."""

    def score(self, features: Floats) -> Doubles:
        """[n] the scores of one or more scaled documents [n, F]."""

    def policy(self) -> ScaledScoringPolicy:
        """The current ranker as a policy, which later steps do not change."""


class BaseRanker(ABC):
    """A ranker that is fitted to weighted targets step by step."""

    @abstractmethod
    def step(self) -> dict[str, float]:
        """Take one step; returns the values to log, by name.

        Raises:
            NonFiniteLossError: Before anything is changed.
        """

    def begin_step(self) -> Callable[[], dict[str, float]]:
        """Start a step if it is taken by another process; returns a function that ends it and returns its values."""
        return self.step

    def begin_score(self, features: Floats) -> Callable[[], Doubles]:
        """Likewise for the scores of documents."""
        return partial(self.score, features)

    @abstractmethod
    def score(self, features: Floats) -> Doubles:
        """[n] the scores of one or more scaled documents [n, F]."""

    @abstractmethod
    def policy(self) -> ScaledScoringPolicy:
        """The current ranker as a policy, which later steps do not change."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """A copy of everything needed to continue, except the targets."""

    @abstractmethod
    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from `state`, on the same targets."""


def at_once(calls: Sequence[Callable[[], Result]], threads: int) -> list[Result]:
    """The results of independent calls of rankers, several at a time: as many as torch has threads, which get one each.

    Matrices of one ranker are too small to share their products; and with one thread the bits are those of any machine.

    Args:
        calls: What to call.
        threads: Maximum number of threads.
    """
    threads = min(threads, torch.get_num_threads(), len(calls))
    if threads <= 1:
        return [call() for call in calls]
    with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        return list(pool.map(lambda call: call(), calls))


def scores_of(rankers: Sequence[ScoringRanker], features: Floats) -> list[Doubles]:
    """[n] each, the scores of documents by several rankers, which compute at the same time."""
    begun = [
        ranker.begin_score(features) if isinstance(ranker, BaseRanker) else partial(ranker.score, features)
        for ranker in rankers
    ]
    return at_once(begun, torch.get_num_threads())


class BoostedTrees(BaseRanker):
    """Grows a tree in each step. Everything but the number of steps is determined by the lists and the settings."""

    def __init__(self, threads: int, normaliser: Normaliser) -> None:
        """A ranker without trees.

        Args:
            threads: Number of threads.
            normaliser: The normaliser that scaled the features, kept in the policy.
        """
        self._threads, self._normaliser = threads, normaliser
        self._step = 0

    @property
    @abstractmethod
    def booster(self) -> Any:
        """LightGBM's booster."""

    @abstractmethod
    def grow(self) -> None:
        """Grow one more tree, or none where no split is left."""

    @property
    def n_trees(self) -> int:
        """The number of trees."""
        return int(self.booster.num_trees())

    def step(self) -> dict[str, float]:
        """Grow one more tree; returns the number of trees."""
        require_room_for_a_tree(self.n_trees)
        self.grow()
        self._step += 1
        return {"trees": self.n_trees}

    def score(self, features: Floats) -> Doubles:
        """[n] the sum of the trees' outputs."""
        scores: Doubles = self.booster.predict(self._normaliser.natively(features), num_threads=self._threads)
        return scores

    def policy(self) -> TreesPolicy:
        """The trees grown so far."""
        trees = RegressionTrees.from_lightgbm(self.booster.model_to_string())
        return TreesPolicy(trees, self._threads, self._normaliser)

    def state(self) -> dict[str, Any]:
        """The number of steps taken."""
        # Not the number of trees: a step without one also advances LightGBM's random state.
        return {"trees": self._step}

    def load_state(self, state: dict[str, Any]) -> None:
        """Grow the trees again."""
        assert self._step <= state["trees"], "trees cannot be removed: load an earlier state into a new ranker"
        for _ in range(state["trees"] - self._step):
            self.step()


def softmax_loss(scores: Tensor, target: Tensor, where: Tensor) -> Tensor:
    """−Σ_k y_k log softmax(s)_k over the documents of each list (ListNet's top-1 cross-entropy, not normalised).

    Targets are not normalised to sum to 1, so the loss is linear in them: the mean loss over sessions with the same
    list is the loss of their mean (weighted) clicks.

    >>> import torch
    >>> scores, target, where = torch.tensor([[0.0, 0.0, 9.0]]), torch.tensor([[1.0, 0.0, 0.0]]), torch.ones(1, 3) > 0
    >>> where[0, 2] = False
    >>> softmax_loss(scores, target, where)  # log 2
    tensor([0.6931])

    Args:
        scores: [B, K] s.
        target: [B, K] y, such as clicks or weighted clicks; 0 where there is no document.
        where: [B, K] true = a document.

    Returns:
        [B] the loss of each list.
    """
    return -(target * log_softmax(scores, where)).sum(dim=1)


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
