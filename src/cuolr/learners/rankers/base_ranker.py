"""The interface of rankers that are trained step by step, whatever their targets."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from cuolr.policies.policy import ScaledScoringPolicy
from cuolr.types import Doubles, Floats


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


def scores_of(rankers: Sequence[ScoringRanker], features: Floats) -> list[Doubles]:
    """[n] each, the scores of documents by several rankers; those in other processes compute at the same time."""
    begun = [
        ranker.begin_score(features) if isinstance(ranker, BaseRanker) else partial(ranker.score, features)
        for ranker in rankers
    ]
    return [scores() for scores in begun]
