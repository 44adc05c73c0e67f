"""The interface of what the training loop trains step by step."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from cuolr.errors import InputError
from cuolr.policies.policy import RankingPolicy


class NonFiniteLossError(InputError):
    """A loss is infinite or NaN; the step changed nothing.

    Attributes:
        term: The name of the loss.
    """

    def __init__(self, term: str) -> None:
        self.term = term
        super().__init__(f"'{term}' is not finite; lower the learning rates or set max_gradient_norm")

    def __reduce__(self) -> tuple[type["NonFiniteLossError"], tuple[str]]:
        """From another process, too, it comes with its term."""
        return type(self), (self.term,)


class Steps(ABC):
    """Trains step by step, on data that it holds, and returns a ranking policy at any time.

    Attributes:
        stops_on_plateau: Whether the held-out score follows the quality of the ranking, so that training without labels
            may stop when the score hardly rises.
        early_validations: Steps at which training without labels is validated before the first regular validation:
            on few queries, rankers are at their best early.
    """

    stops_on_plateau: ClassVar[bool] = False
    early_validations: ClassVar[tuple[int, ...]] = ()

    @abstractmethod
    def step(self) -> dict[str, float]:
        """Take one step; returns the values to log, by name.

        Raises:
            NonFiniteLossError: Before anything is changed.
        """

    @abstractmethod
    def held_out_score(self) -> float:
        """How well the clicks on held-out queries are explained, higher = better; uses no labels."""

    @abstractmethod
    def policy(self) -> RankingPolicy:
        """The ranking policy learned so far; later steps do not change it."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """A copy of everything needed to continue, as nested dictionaries of tensors and plain values."""

    @abstractmethod
    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from `state`."""
