"""How to import a log."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from cuolr.config import Range, check_arguments
from cuolr.errors import InputError
from cuolr.logs.hashed_ids import IdKey
from cuolr.logs.importing.extra_columns import check_context, reward_weights
from cuolr.logs.time_window import ALL_TIME, TimeWindow

IDS = ("query_id", "session_id", "doc_id")
NUMBERS = ("position", "click", "logging_propensity", "examination", "reward", "randomised")
REQUIRED = ("query_id", "session_id", "position", "doc_id", "click")
OPTIONAL = ("logging_propensity", "examination", "timestamp", "reward", "randomised", "user_id")

FirstPosition: TypeAlias = Literal["auto", 0, 1]


@dataclass(frozen=True)
class ImportOptions:
    """How to import a log.

    Attributes:
        k: Length of the lists; longer ones are truncated. None = the longest.
        strict: Whether every problem is an error. Otherwise, what can be repaired is repaired, and other sessions
            with a problem are dropped.
        max_dropped: The largest share of the sessions, the impressions or the clicks that may be dropped.
        columns: The table's name of a column where it has another than ours, such as `{"doc_id": "product_id"}`.
        first_position: The number of the first position of a page. "auto" = 0 if positions start there, else 1; always
            1 if `strict`.
        window: The sessions to keep, by time.
        session_ids: Whether the log keeps the ids of sessions, for merging and deleting; no learner uses them.
        id_key: Key to hash the ids of queries, sessions and users with; None = keep them as they are.
        reward: The reward of an impression: columns of the table with weights, such as "click=1,cart=3,purchase=10" or
            `{"click": 1, "cart": 3, "purchase": 10}`; or one column, such as "revenue". None = the column reward, if
            there is one.
        context: Columns that describe the session, such as device or layout, on which examination may depend.
        one_query: Whether all sessions are of one query, as in a log of recommendations; the table then needs no
            query_id.
    """

    k: int | None = None
    strict: bool = False
    max_dropped: float = 0.05
    columns: Mapping[str, str] = field(default_factory=dict)
    first_position: FirstPosition = "auto"
    window: TimeWindow = ALL_TIME
    session_ids: bool = True
    id_key: IdKey | None = None
    reward: str | Mapping[str, float] | None = None
    context: Sequence[str] = ()
    one_query: bool = False

    def __post_init__(self) -> None:
        check_arguments(max_dropped=(self.max_dropped, Range(0, 1)))
        if self.k is not None:
            check_arguments(k=(self.k, Range(1)))
        if self.first_position not in ("auto", 0, 1):
            raise InputError(f"first_position: expected 'auto', 0 or 1, found {self.first_position!r}")
        unknown = [name for name in self.columns if name not in (*REQUIRED, *OPTIONAL)]
        if unknown:
            known = ", ".join((*REQUIRED, *OPTIONAL))
            raise InputError([f"columns: expected one of {known}, found '{name}'" for name in unknown])
        if self.reward_weights and "reward" in self.columns:
            raise InputError("reward: expected columns with weights, or a column called reward, found both")
        if isinstance(self.context, str):
            object.__setattr__(self, "context", (self.context,))
        check_context(self.context)

    @property
    def reward_weights(self) -> dict[str, float]:
        """The weight of each column of the table in the reward; empty = none is given."""
        return reward_weights(self.reward)
