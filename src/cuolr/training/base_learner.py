"""What every learner does: take batches of sessions, and give a ranking policy at any time."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from torch import Tensor

from cuolr.data.normalise import Normaliser
from cuolr.errors import InputError
from cuolr.logs.clicklog import ClickLog
from cuolr.policies.policy import RankingPolicy
from cuolr.registry import Registry
from cuolr.training.batches import Batches, SessionBatch
from cuolr.types import Ints

LEARNERS: Registry[type["Learner"]] = Registry("learner", package="cuolr.learners", entry_points="cuolr.learners")


class NonFiniteLossError(InputError):
    """A loss became infinite or not a number; nothing was changed by the step that found it.

    Attributes:
        term: The name of the loss.
    """

    def __init__(self, term: str) -> None:
        self.term = term
        super().__init__(f"'{term}' is not finite; lower the learning rates or set max_gradient_norm")


class Learner(ABC):
    """Learns to rank from batches of a click log.

    Attributes:
        Config: The frozen dataclass of its settings.
        needs_sessions: Whether it needs each session's own clicks, so that an aggregated log will not do.
        learns_by_batch: Whether a step learns from the batch that it is given, which several processes can share; else
            it learns from all that `begin` was given.
        max_unshown: How many of a query's unshown documents it asks for with each list, at most.
    """

    Config: ClassVar[type[Any]]
    needs_sessions: ClassVar[bool] = False
    learns_by_batch: ClassVar[bool] = True
    max_unshown: int = 0

    @abstractmethod
    def __init__(self, config: Any, n_features: int, k: int, seed: int, normaliser: Normaliser) -> None:
        """A learner that has seen nothing yet.

        Args:
            config: An instance of `Config`.
            n_features: F, the number of features of a document.
            k: K, the number of positions of the longest list.
            seed: Of all that is random in it; the global random state is left alone.
            normaliser: How the batches' features were scaled, to travel with the policy.
        """

    def hold_out(self, queries: Ints) -> None:
        """Called before `prepare` with the queries that validate: nothing is to be learned from their clicks."""
        return  # most learn from what each step brings, and these are not in it

    def prepare(self, log: ClickLog) -> ClickLog:
        """The log as the batches are to show it, such as with clicks that are weighted; by default as it is."""
        return log

    def begin(self, batches: Batches) -> None:
        """Called before the first step with all that there is to learn from, for learners that need it at once."""
        return  # most take what each step brings

    @abstractmethod
    def update(self, batch: SessionBatch) -> dict[str, float]:
        """One step of learning; returns what is worth plotting, by name.

        Raises:
            NonFiniteLossError: Before anything is changed.
        """

    @abstractmethod
    def held_out_score(self, batch: SessionBatch) -> Tensor:
        """[B] how well each held-out list's clicks are explained, higher = better, without labels."""

    @abstractmethod
    def policy(self) -> RankingPolicy:
        """The ranking policy learned so far; later steps do not change it."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """All that it takes to go on as if never stopped, as nested dictionaries of tensors and plain values.

        Networks, targets, optimisers, random state; a copy that later steps do not change.
        """

    @abstractmethod
    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
