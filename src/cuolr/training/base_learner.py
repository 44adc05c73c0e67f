"""The interface of learners, which fit a ranking policy on a click log."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

from cuolr.data.normalise import Normaliser
from cuolr.examination.propensities import Propensities
from cuolr.logs.clicklog import ClickLog
from cuolr.policies.policy import RankingPolicy
from cuolr.progress import Stages, no_stages
from cuolr.training import LEARNERS as LEARNERS
from cuolr.training.batches import Batches, WeightedLists
from cuolr.training.hold_out import sample_rows, split_by_query
from cuolr.training.loop import Loop
from cuolr.training.training_config import TrainingConfig
from cuolr.training.warm_start import WarmStart
from cuolr.types import Ints

# Tables of results test methods against baselines.
Role = Literal["method", "baseline"]
# The log that a learner reads: the clicks of each session, one aggregated row per distinct list, or either.
LogForm = Literal["sessions", "lists", "any"]
# The values to try for each setting, by name, such as `learner.learning_rate`.
SearchSpace: TypeAlias = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class FitTask:
    """The input of a learner. It has no field for labels.

    Attributes:
        log: The log, in the form that the learner asks for. Rewards, if it has any, are in units of the mean reward of
            a click; `ClickLog.rewards` is what to maximise.
        normaliser: Fitted on the log's candidates.
        held_out: Queries held out for validation, whose clicks must not be used in training; empty if training
            validates on labels.
        config: Number of steps, batch size, seed and other settings of training.
        loop: The training loop, with validation, checkpoints and resuming.
        propensities: Examination by position, for learners that take propensities.
        start: The model to start from; None = start anew. The normaliser is that of the model.
        stages: Receives the progress of what comes before the first step.
        ray: The module `ray`, connected to a cluster that trains the rankers of an ensemble, or shares the trees of
            LambdaMART; None = in this process.
    """

    log: ClickLog
    normaliser: Normaliser
    held_out: Ints
    config: TrainingConfig
    loop: Loop
    propensities: Propensities | None = None
    start: WarmStart | None = None
    stages: Stages = no_stages
    ray: Any = None

    def batches(self, lists: WeightedLists, max_unshown: int = 0) -> tuple[Batches, Batches | None]:
        """The training batches, and those of the held-out queries; None if no queries are held out.

        Args:
            lists: The lists of the log.
            max_unshown: Maximum number of a query's unshown documents that are added to each list.
        """
        rows, held_out = None, None
        if len(self.held_out):
            rows, held_out = split_by_query(lists, self.held_out)
            held_out = sample_rows(held_out, self.config.max_held_out, self.config.seed)

        def of(rows: Ints | None) -> Batches:
            return Batches(lists, self.normaliser, self.config.batch_size, self.config.seed, max_unshown, rows)

        return of(rows), None if held_out is None else of(held_out)


class Learner(ABC):
    """Fits a ranking policy on a click log.

    Attributes of the class tell experiments, tuning and reports what they need to know about a learner.

    Attributes:
        Config: The frozen dataclass of its settings.
        role: Its role in tables of results.
        log_form: The form of the log that it reads.
        takes_documents: Whether it also learns from a log that counts documents, whose lists are not known.
        takes_propensities: Whether it uses propensities, the examination of positions.
        data_parallel: Whether several processes can share its batches.
        search_space: The values that tuning tries for each setting.
        cold_start: Why it cannot start from a trained model; "" = it can.
    """

    Config: ClassVar[type[Any]]
    role: ClassVar[Role] = "method"
    log_form: ClassVar[LogForm] = "any"
    takes_documents: ClassVar[bool] = False
    takes_propensities: ClassVar[bool] = False
    data_parallel: ClassVar[bool] = False
    search_space: ClassVar[SearchSpace] = {}
    cold_start: ClassVar[str] = "it always starts anew"

    def __init__(self, config: Any) -> None:
        self.config = config

    @abstractmethod
    def fit(self, task: FitTask) -> RankingPolicy:
        """Learn a policy from a log; a learner that trains step by step returns `task.loop.run(steps)`."""
