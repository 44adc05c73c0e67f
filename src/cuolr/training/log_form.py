"""A log in the form that a learner reads. Whether to aggregate is decided only here."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Self

from cuolr.errors import InputError, problems_in
from cuolr.examination.propensities import Propensities, propensities_of_log, read_propensities
from cuolr.logs.aggregate import aggregate, aggregate_folder
from cuolr.logs.clicklog import ClickLog, require_lists, require_sessions
from cuolr.logs.log_folder import load_click_log, read_click_log, read_timestamps
from cuolr.logs.time_window import ALL_TIME, Timestamps, TimeWindow, time_text, within
from cuolr.progress import Stages, no_stages
from cuolr.training.base_learner import Learner
from cuolr.training.warm_start import WarmStart

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
        period: Returns the times of the earliest and the latest session; None if the log has no timestamps.
    """

    example: ClickLog
    sessions: Callable[[Stages], ClickLog]
    lists: Callable[[Stages], ClickLog]
    propensities: Callable[[], Propensities | None] = lambda: None
    period: Callable[[], tuple[str, str] | None] = lambda: None

    @classmethod
    def of(cls, log: ClickLog, propensities: Propensities | None = None) -> Self:
        """A log in memory."""
        return cls(
            log, lambda _: log, lambda _: aggregate(log), lambda: propensities, lambda: _period(log.timestamp, ALL_TIME)
        )

    @classmethod
    def of_folder(cls, folder: Path, propensities: Path | None = None, window: TimeWindow = ALL_TIME) -> Self:
        """A saved log, with the propensities of a file or, by default, those in its folder.

        It is aggregated block by block, so that only the distinct lists need to fit into memory.

        Args:
            folder: Folder of the log.
            propensities: File of propensities; None = the one in the folder, if there is one.
            window: The sessions to read.
        """
        example = next(read_click_log(folder, rows_at_a_time=1, documents=True))
        return cls(
            example,
            lambda stages: load_click_log(folder, window, ids=False, stages=stages, documents=True),
            lambda stages: aggregate_folder(folder, window, stages=stages),
            lambda: propensities_of_log(folder) if propensities is None else read_propensities(propensities),
            lambda: _period(read_timestamps(folder), window),
        )

    def with_features_as(self, start: WarmStart) -> "TrainingLog":
        """The log with its features in the order of a model's; raises if they are others."""
        normaliser, n_features = start.normaliser, start.policy.n_features

        def ordered(log: ClickLog) -> ClickLog:
            with problems_in(start.name):
                n = log.candidates.n_features if n_features is None else n_features
                return replace(log, candidates=normaliser.as_fitted(log.candidates, n))

        return replace(
            self,
            example=ordered(self.example),
            sessions=lambda stages: ordered(self.sessions(stages)),
            lists=lambda stages: ordered(self.lists(stages)),
        )

    def read_for(
        self,
        learner: type[Learner],
        name: str,
        aggregation: Aggregation = "auto",
        stages: Stages = no_stages,
    ) -> ClickLog:
        """The log in the form that a learner reads.

        A learner that reads either form gets aggregated rows, unless the logging policy is stochastic: then hardly any
        two lists are the same.

        Args:
            learner: The learner, whose `log_form` is used.
            name: The learner's name, for error messages.
            aggregation: The user's choice.
            stages: Receives the progress.
        """
        if not learner.takes_documents:
            require_lists(self.example, name)
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


def _period(timestamp: Timestamps | None, window: TimeWindow) -> tuple[str, str] | None:
    """The earliest and the latest time in a window."""
    if timestamp is None:
        return None
    kept = timestamp[within(timestamp, window.bounds(timestamp.max()))] if window else timestamp
    return time_text(kept.min()), time_text(kept.max())
