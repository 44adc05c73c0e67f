"""What every ranker does, whatever its targets are made of."""

from abc import ABC, abstractmethod
from typing import Any, Protocol

from cuolr.policies.policy import ScaledScoringPolicy
from cuolr.types import Doubles, Floats


class ScoringRanker(Protocol):
    """A member of an ensemble."""

    def score(self, features: Floats) -> Doubles:
        """[n] of scaled documents [n, F], at least one."""

    def policy(self) -> ScaledScoringPolicy:
        """As it is now; later steps do not change it."""


class BaseRanker(ABC):
    """Fits weighted targets step by step."""

    @abstractmethod
    def step(self) -> dict[str, float]:
        """One more step; returns the values to log, by name.

        Raises:
            NonFiniteLossError: Before anything is changed.
        """

    @abstractmethod
    def score(self, features: Floats) -> Doubles:
        """[n] of scaled documents [n, F], at least one."""

    @abstractmethod
    def policy(self) -> ScaledScoringPolicy:
        """As it is now; later steps do not change it."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """A copy of all that it takes to continue, besides the targets."""

    @abstractmethod
    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from `state`, on the same targets."""
