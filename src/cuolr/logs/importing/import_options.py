"""How to import a log, with the columns that the caller names: terms of the reward, and the context of a session."""

import difflib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import polars as pl

from cuolr.config import Range, check_arguments
from cuolr.data.column_kinds import looks_like_label
from cuolr.errors import InputError
from cuolr.logs.clicklog import CONTEXT
from cuolr.logs.hashed_ids import IdKey
from cuolr.logs.time_window import ALL_TIME, TimeWindow

# The context of sessions whose table has no value for it.
MISSING = "(missing)"


def reward_weights(reward: str | Mapping[str, float] | None) -> dict[str, float]:
    """The weight of each column in the reward; empty if none is given.

    >>> reward_weights("click=1,purchase=10")
    {'click': 1.0, 'purchase': 10.0}
    >>> reward_weights("revenue")
    {'revenue': 1.0}
    """
    if reward is None:
        return {}
    listed = list(_terms(reward)) if isinstance(reward, str) else list(reward.items())
    terms = dict(listed)
    if len(terms) < len(listed):
        raise InputError(f"reward: expected each column once, found {reward!r}")
    bad = [name for name, weight in terms.items() if not isinstance(weight, int | float) or not math.isfinite(weight)]
    if bad or not terms or "" in terms:
        found = repr(reward) if not bad else f"the weight {terms[bad[0]]!r} of '{bad[0]}'"
        raise InputError(
            f"reward: expected columns with weights, such as click=1,purchase=10, or a column, found {found}"
        )
    return {name: float(weight) for name, weight in terms.items()}


def _terms(reward: str) -> Iterator[tuple[str, float]]:
    for term in reward.split(","):
        name, sign, weight = term.strip().rpartition("=")
        try:
            yield (name.strip(), float(weight)) if sign else (weight, 1.0)
        except ValueError:
            raise InputError(
                f"reward: expected a number after '=', such as purchase=10, found '{term.strip()}'"
            ) from None


def check_context(names: Sequence[str]) -> None:
    """Raise if a column cannot be a context."""
    problems = [
        f"context: '{name}' looks like a relevance label, which a log cannot hold"
        for name in names
        if looks_like_label(name)
    ]
    problems += [f"context: '{name}' is given twice" for name in dict.fromkeys(names) if names.count(name) > 1]
    problems += ["context: expected the name of a column, found ''" for name in names if not name]
    if problems:
        raise InputError(problems)


def reward_column(weights: Mapping[str, float], schema: pl.Schema, ours: Mapping[str, str], place: object) -> pl.Expr:
    """Σ weight · column; null where a value is not a number. An empty value counts as 0: nothing happened.

    Args:
        weights: By column of the table, or by our name of a column.
        schema: The columns of the table.
        ours: The table's name of each of our columns.
        place: What to call the table.
    """
    sources = {name: name if name in schema else ours.get(name, name) for name in weights}
    _require(sources.values(), schema, place, "reward")
    wrong = [source for source in sources.values() if not _can_be_number(schema[source])]
    if wrong:
        raise InputError([f"{place}: column '{name}': expected numbers, found {schema[name]}" for name in wrong])
    terms = [weight * _number(sources[name], schema[sources[name]]) for name, weight in weights.items()]
    return pl.sum_horizontal(terms, ignore_nulls=False)


def context_columns(names: Sequence[str], schema: pl.Schema, place: object) -> list[pl.Expr]:
    """The context columns as text."""
    _require(names, schema, place, "context")
    return [pl.col(name).cast(pl.String).alias(f"{CONTEXT}{name}") for name in names]


def _can_be_number(dtype: pl.DataType) -> bool:
    return dtype.is_numeric() or dtype in (pl.Boolean, pl.String)


def _number(name: str, dtype: pl.DataType) -> pl.Expr:
    column = pl.col(name)
    if dtype == pl.String:
        words = column.str.strip_chars().str.to_lowercase().replace({"": "0", "true": "1", "false": "0"})
        column = words.fill_null("0")
    return column.cast(pl.Float64, strict=False) if dtype == pl.String else column.cast(pl.Float64).fill_null(0.0)


def _require(names: Iterable[str], schema: pl.Schema, place: object, what: str) -> None:
    found = schema.names()
    problems = []
    for name in names:
        if name not in schema:
            close = difflib.get_close_matches(name, found, n=1)
            hint = f" (did you mean '{close[0]}'?)" if close else ""
            problems.append(f"{place}: column '{name}' of the {what} is missing{hint}; found: {', '.join(found)}")
    if problems:
        raise InputError(problems)


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
