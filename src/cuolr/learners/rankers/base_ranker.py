"""The interface of rankers that are trained step by step, whatever their targets."""

from abc import ABC, abstractmethod
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
