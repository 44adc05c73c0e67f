"""What the training loop drives: something that improves step by step, and gives a ranking policy at any time."""

from abc import ABC, abstractmethod
from typing import Any

from cuolr.errors import InputError
from cuolr.policies.policy import RankingPolicy


class NonFiniteLossError(InputError):
    """A loss became infinite or not a number; the step that met it changed nothing.

    Attributes:
        term: The name of the loss.
    """

    def __init__(self, term: str) -> None:
        self.term = term
        super().__init__(f"'{term}' is not finite; lower the learning rates or set max_gradient_norm")


class Steps(ABC):
    """Learns step by step, from data that it holds."""

    @abstractmethod
    def step(self) -> dict[str, float]:
        """Make one step; returns the values to log, by name.

        Raises:
            NonFiniteLossError: Before anything is changed.
        """

    @abstractmethod
    def held_out_score(self) -> float:
        """How well the clicks on held-out queries are explained, higher = better, without labels."""

    @abstractmethod
    def policy(self) -> RankingPolicy:
        """The ranking policy learned so far; later steps do not change it."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """A copy of all that it takes to continue, as nested dictionaries of tensors and plain values."""

    @abstractmethod
    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from `state`."""
