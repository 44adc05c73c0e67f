"""A log in the form that a learner reads. Whether to aggregate is decided here, and nowhere else."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from cuolr.errors import InputError
from cuolr.examination.propensities import PROPENSITY_FILE, Propensities, read_propensities
from cuolr.logs.aggregate import aggregate, aggregate_folder
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.log_folder import load_click_log, read_click_log, require_sessions
from cuolr.training.base_learner import Learner

# Whether sessions that were shown the same list become one row; `auto` = where nothing is lost and it saves time.
Aggregation = Literal["auto", "yes", "no"]


@dataclass(frozen=True)
class TrainingLog:
    """A log that can be had by session or aggregated.

    Attributes:
        example: Some rows of it, to see what columns it has.
        sessions: Gives the log as it is.
        lists: Gives the aggregated log.
        propensities: Gives the examination by position, where it is known of these users; asked for only by learners
            that take it.
    """

    example: ClickLog
    sessions: Callable[[], ClickLog]
    lists: Callable[[], ClickLog]
    propensities: Callable[[], Propensities | None] = lambda: None

    @classmethod
    def of(cls, log: ClickLog, propensities: Propensities | None = None) -> Self:
        """A log in memory."""
        return cls(log, lambda: log, lambda: aggregate(log), lambda: propensities)

    @classmethod
    def of_folder(cls, folder: Path) -> Self:
        """A saved log, with the propensities that lie beside it.

        It is aggregated part by part, so that only the distinct lists need to fit into memory.
        """
        example = next(read_click_log(folder, rows_at_a_time=1))
        beside = folder / PROPENSITY_FILE
        return cls(
            example,
            lambda: load_click_log(folder),
            lambda: aggregate_folder(folder),
            lambda: read_propensities(beside) if beside.is_file() else None,
        )

    def read_for(self, learner: type[Learner], name: str, aggregation: Aggregation = "auto") -> ClickLog:
        """The log in the form that a learner reads.

        A learner that reads either gets aggregated rows, unless the logging policy drew each list at random: then
        hardly two lists are the same.

        Args:
            learner: Its `log_form` decides.
            name: Of the learner, for messages.
            aggregation: What the user asks for.
        """
        if learner.log_form == "sessions":
            require_sessions(self.example, name)
            if aggregation == "yes":
                raise InputError(f"aggregate: {name} needs the clicks of each session; expected auto or no, found yes")
            return self.sessions()
        if self.example.aggregated:
            return self.sessions()
        if learner.log_form == "lists":
            if aggregation == "no":
                raise InputError(
                    f"aggregate: {name} always learns from aggregated lists; expected auto or yes, found no"
                )
            return self.lists()
        drawn_at_random = self.example.logging_propensity is not None
        return self.sessions() if aggregation == "no" or (aggregation == "auto" and drawn_at_random) else self.lists()
