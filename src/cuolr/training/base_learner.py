"""What a learner is: it fits a ranking policy to a click log."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

from cuolr.data.normalise import Normaliser
from cuolr.examination.propensities import Propensities
from cuolr.logs.clicklog import ClickLog
from cuolr.policies.policy import RankingPolicy
from cuolr.registry import Registry
from cuolr.training.batches import Batches, WeightedLists
from cuolr.training.hold_out import sample_rows, split_by_query
from cuolr.training.loop import Loop
from cuolr.training.training_config import TrainingConfig
from cuolr.types import Ints

LEARNERS: Registry[type["Learner"]] = Registry("learner", package="cuolr.learners", entry_points="cuolr.learners")

# A baseline is what methods are tested against in a table.
Role = Literal["method", "baseline"]
# What a learner reads: each session's own clicks, one aggregated row per distinct list, or either.
LogForm = Literal["sessions", "lists", "any"]
# The values to try of each setting, by its name, such as `learner.learning_rate`.
SearchSpace: TypeAlias = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class FitTask:
    """What a learner learns from, and how. It has no field for labels.

    Attributes:
        log: In the form that the learner asks for.
        normaliser: Fitted on the log's candidates.
        held_out: Queries whose clicks validate, so that nothing may be learned from them; empty where labels validate.
        config: Steps, batch size, seed.
        loop: Trains step by step, with validation, checkpoints and resuming.
        propensities: Examination by position, for learners that take them.
    """

    log: ClickLog
    normaliser: Normaliser
    held_out: Ints
    config: TrainingConfig
    loop: Loop
    propensities: Propensities | None = None

    def batches(self, lists: WeightedLists, max_unshown: int = 0) -> tuple[Batches, Batches | None]:
        """Batches to learn from, and those of the held-out queries to validate on; None where labels validate.

        Args:
            lists: Made from the log.
            max_unshown: How many of a query's unshown documents come with each list, at most.
        """
        rows, held_out = None, None
        if len(self.held_out):
            rows, held_out = split_by_query(lists, self.held_out)
            held_out = sample_rows(held_out, self.config.max_held_out, self.config.seed)

        def of(rows: Ints | None) -> Batches:
            return Batches(lists, self.normaliser, self.config.batch_size, self.config.seed, max_unshown, rows)

        return of(rows), None if held_out is None else of(held_out)


class Learner(ABC):
    """Fits a ranking policy to a click log.

    What an experiment, the tuner and a report need to know of a learner is said by its class.

    Attributes:
        Config: The frozen dataclass of its settings.
        role: Its role in a table of results.
        log_form: What it reads.
        takes_propensities: Whether it uses the examination of positions.
        data_parallel: Whether several processes can share its batches.
        search_space: The values that tuning tries of each setting.
    """

    Config: ClassVar[type[Any]]
    role: ClassVar[Role] = "method"
    log_form: ClassVar[LogForm] = "any"
    takes_propensities: ClassVar[bool] = False
    data_parallel: ClassVar[bool] = False
    search_space: ClassVar[SearchSpace] = {}

    def __init__(self, config: Any) -> None:
        self.config = config

    @abstractmethod
    def fit(self, task: FitTask) -> RankingPolicy:
        """The policy learned from a log; one that learns step by step returns `task.loop.run(steps)`."""
