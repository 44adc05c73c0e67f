"""A log in the form that a learner reads. Whether to aggregate is decided only here."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from cuolr.errors import InputError
from cuolr.examination.propensities import PROPENSITY_FILE, Propensities, read_propensities
from cuolr.logs.aggregate import aggregate, aggregate_folder
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.log_folder import load_click_log, read_click_log, require_sessions
from cuolr.progress import Stages, unseen_stages
from cuolr.training.base_learner import Learner

# Whether to combine sessions with the same list into one row; `auto` = if this loses nothing and saves time.
Aggregation = Literal["auto", "yes", "no"]


@dataclass(frozen=True)
class TrainingLog:
    """A log that can be read by session or aggregated.

    Attributes:
        example: A few rows of the log, which show its columns.
        sessions: Returns the log as it is, and tells of the rows read so far.
        lists: Returns the aggregated log, likewise.
        propensities: Returns the propensities of these users, if known; called only for learners that take them.
    """

    example: ClickLog
    sessions: Callable[[Stages], ClickLog]
    lists: Callable[[Stages], ClickLog]
    propensities: Callable[[], Propensities | None] = lambda: None

    @classmethod
    def of(cls, log: ClickLog, propensities: Propensities | None = None) -> Self:
        """A log in memory."""
        return cls(log, lambda _: log, lambda _: aggregate(log), lambda: propensities)

    @classmethod
    def of_folder(cls, folder: Path, propensities: Path | None = None) -> Self:
        """A saved log, with the propensities of a file or, by default, those in its folder.

        It is aggregated block by block, so that only the distinct lists need to fit into memory.
        """
        example = next(read_click_log(folder, rows_at_a_time=1))
        beside = folder / PROPENSITY_FILE
        return cls(
            example,
            lambda stages: load_click_log(folder, ids=False, stages=stages),
            lambda stages: aggregate_folder(folder, stages=stages),
            lambda: read_propensities(propensities or beside) if propensities or beside.is_file() else None,
        )

    def read_for(
        self,
        learner: type[Learner],
        name: str,
        aggregation: Aggregation = "auto",
        stages: Stages = unseen_stages,
    ) -> ClickLog:
        """The log in the form that a learner reads.

        A learner that reads either form gets aggregated rows, unless the logging policy is stochastic: then hardly any
        two lists are the same.

        Args:
            learner: The learner, whose `log_form` is used.
            name: The learner's name, for error messages.
            aggregation: The user's choice.
            stages: Told of the progress.
        """
        if learner.log_form == "sessions":
            require_sessions(self.example, name)
            if aggregation == "yes":
                raise InputError(f"aggregate: {name} needs the clicks of each session; use auto or no instead of yes")
            return self.sessions(stages)
        if self.example.aggregated:
            return self.sessions(stages)
        if learner.log_form == "lists":
            if aggregation == "no":
                raise InputError(
                    f"aggregate: {name} always learns from aggregated lists; use auto or yes instead of no"
                )
            return self.lists(stages)
        drawn_at_random = self.example.logging_propensity is not None
        return (
            self.sessions(stages)
            if aggregation == "no" or (aggregation == "auto" and drawn_at_random)
            else self.lists(stages)
        )
