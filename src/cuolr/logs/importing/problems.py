"""Checks of the long table of a log: all kinds of problems, with the first 20 of each."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from cuolr.data.tables import ROW
from cuolr.logs.clicklog import CONTEXT
from cuolr.logs.importing.log_rows import LogRows
from cuolr.types import Bools, Ints

MAX_PROBLEMS = 20
EVERY_DOCUMENT = "the table needs a row for each shown document, clicked or not"

# The sessions with one kind of problem, and the message of the i-th.
Found: TypeAlias = tuple[Ints, Callable[[int], str]]


@dataclass(frozen=True)
class RowProblem:
    """What can be wrong with a row.

    Attributes:
        reason: In short, for counts.
        text: What was expected and what was found, with the row's values by name.
        bad: Whether a resolved row has the problem.
    """

    reason: str
    text: str
    bad: pl.Expr

    def line(self, rows: LogRows, row: Mapping[str, Any]) -> str:
        """The problem of one row, with its place."""
        values = {name: quote(value) for name, value in row.items()}
        return f"{rows.place(row[ROW])}: {self.text.format(**values)}"


NO_SESSION = "no session_id"
WITHOUT_FEATURES = "document without features"


def row_kinds(columns: Sequence[str], first: int) -> list[RowProblem]:
    """What can be wrong with single rows.

    Args:
        columns: Of the resolved rows, in which a null says that there is a problem; see `resolve`.
        first: The number of the first position of a page.
    """
    no_impression = ~pl.col("impression")
    clicked = (pl.col("click") == 1).fill_null(False)
    no_nul = ~pl.col("nul")
    kinds = [
        RowProblem(
            "id with the character NUL",
            "expected ids without the character NUL, found {query_id}, {session_id} and {doc_id}",
            pl.col("nul"),
        ),
        RowProblem(NO_SESSION, "session_id: expected a value, found {session_id}", pl.col("session").is_null()),
        RowProblem(
            "unknown query",
            "query_id: {query_id} is not in the features",
            pl.col("query").is_null() & no_nul,
        ),
        RowProblem(
            "no position or no doc_id",
            "a click without an impression: expected a position and a doc_id, found {position} and {doc_id}",
            no_impression & clicked,
        ),
        RowProblem(
            "no position or no doc_id",
            "expected a position and a doc_id, found {position} and {doc_id}",
            no_impression & ~clicked,
        ),
        RowProblem(
            f"position that is not a whole number, counted from {first}",
            f"position: expected a whole number, counted from {first}, found {{position}}",
            pl.col("impression") & pl.col("position").is_null(),
        ),
        RowProblem(
            WITHOUT_FEATURES,
            "doc_id: {doc_id} is not among the documents of query {query_id} in the features",
            pl.col("impression") & pl.col("query").is_not_null() & pl.col("index").is_null() & no_nul,
        ),
        RowProblem("click that is not 0 or 1", "click: expected 0 or 1, found {click}", pl.col("click").is_null()),
    ]
    return kinds + [kind for name, kind in _optional_kinds(clicked) if name in columns]


def _optional_kinds(clicked: pl.Expr) -> Iterator[tuple[str, RowProblem]]:
    """By the column that they are about."""
    for name, expected in {
        "logging_propensity": "a float32 number above 0 and at most 1",
        "examination": "0 or 1",
        "randomised": "0 or 1",
        "reward": "a finite number",
        "timestamp": "a finite number or a time",
    }.items():
        example = " such as 2026-11-01T12:30, in the years 1 to 9999" if name == "timestamp" else ""
        text = f"{name}: expected {expected}{example}, found {{{name}}}"
        yield name, RowProblem(f"{name} that is not {expected}", text, pl.col(name).is_null())
        if name == "examination":
            text = "a click on a document that was not examined"
            yield name, RowProblem(text, text, clicked & (pl.col("examination") == 0))


def repair_kinds(columns: Sequence[str]) -> list[RowProblem]:
    """What is wrong with single rows, but repaired where they are resolved, unless every problem is an error."""
    kinds = {
        "several_clicks": RowProblem(
            "click count above 1, taken as a click",
            "click: expected 0 or 1, found {click}; to count clicks, use them as the reward (reward='click=1')",
            pl.col("several_clicks").fill_null(False),
        ),
        "unclicked_reward": RowProblem(
            "reward without a click, taken as clicked",
            "a reward without a click: expected a click where the reward is above 0, found the reward {reward}",
            pl.col("unclicked_reward").fill_null(False),
        ),
        "negative_reward": RowProblem(
            "negative reward, taken as 0",
            "reward: expected a number from 0 up, found {reward}",
            pl.col("negative_reward").fill_null(False),
        ),
    }
    return [kind for name, kind in kinds.items() if name in columns]


@dataclass(frozen=True)
class ProblemKind:
    """All problems of one kind: a line for each of the first, and how many there are."""

    lines: list[str]
    total: int

    def __add__(self, other: "ProblemKind") -> "ProblemKind":
        """The problems of two parts of a table."""
        return ProblemKind((self.lines + other.lines)[:MAX_PROBLEMS], self.total + other.total)

    def text(self, name: str) -> Iterator[str]:
        """The lines, and the number of the others; `name` is the table's."""
        yield from self.lines
        if self.total > len(self.lines):
            yield f"{name}: … and {self.total - len(self.lines)} more of this kind"


def table_problems(rows: LogRows, shown: pl.DataFrame, session_ids: pl.Series, first: int) -> list[ProblemKind]:
    """All that can be wrong with the rows and the lists, by kind, kinds without a problem among them.

    Args:
        rows: The table.
        shown: Its rows, resolved.
        session_ids: The id of each session.
        first: The number of the first position of a page.
    """
    return [*_row_problems(rows, shown, first), *_session_problems(rows, shown, session_ids, first)]


def _row_problems(rows: LogRows, shown: pl.DataFrame, first: int) -> Iterator[ProblemKind]:
    """Problems of single rows."""
    for kind in [*row_kinds(shown.columns, first), *repair_kinds(shown.columns)]:
        numbers = shown.filter(kind.bad)[ROW].sort()
        first_rows = rows.at(numbers.head(MAX_PROBLEMS).to_list()) if len(numbers) else []
        yield ProblemKind([kind.line(rows, row) for row in first_rows], len(numbers))


def _session_problems(
    rows_of: LogRows, shown: pl.DataFrame, session_ids: pl.Series, first: int
) -> Iterator[ProblemKind]:
    """Problems of the lists that the rows form."""
    rows = shown.filter(pl.col("session").is_not_null()) if shown["session"].null_count() else shown
    several = several_queries(rows, len(session_ids))
    # Rows that were already reported are not reported again as a gap or a repeated document.
    unplaced = np.zeros(len(session_ids), np.bool_)
    unplaced[rows.filter(pl.col("position").is_null())["session"].to_numpy()] = True
    (late, late_text), again, (after, gap_text) = position_problems(rows, ~unplaced, first - 1)
    kinds: list[Found] = [
        (np.flatnonzero(several), lambda _: "expected rows of one query, found several queries"),
        (late, lambda i: f"{late_text(i)}; {EVERY_DOCUMENT}"),
        again,
        (after, lambda i: f"{gap_text(i)}; {EVERY_DOCUMENT}"),
        repeated_documents(rows, ~several, first - 1),
        *changing_contexts(rows),
    ]
    for sessions, text in kinds:
        numbered = enumerate(sessions[:MAX_PROBLEMS].tolist())
        lines = [f"{rows_of.name}: session {quote(session_ids[session])}: {text(i)}" for i, session in numbered]
        yield ProblemKind(lines, len(sessions))


def several_queries(rows: pl.DataFrame, sessions: int) -> Bools:
    """[sessions] whether a session has rows of more than one query."""
    known = rows.filter(pl.col("query").is_not_null()) if rows["query"].null_count() else rows
    session, query = known["session"].to_numpy(), known["query"].to_numpy()
    query_of_session = np.zeros(sessions, np.int32)
    query_of_session[session] = query
    several = np.zeros(sessions, np.bool_)
    several[session[query != query_of_session[session]]] = True
    return several


def position_problems(rows: pl.DataFrame, sessions: Bools, shift: int) -> Iterator[Found]:
    """Lists that start late, repeated positions, and gaps, in the given sessions; positions in messages are shifted."""
    session, position = sorted_pairs(rows, "position", sessions)
    same, step = session[1:] == session[:-1], np.diff(position)
    late = np.flatnonzero(np.concatenate([[True], ~same])[: len(session)] & (position != 1))
    yield session[late], lambda i: f"the first position is {position[late[i]] + shift}, expected {1 + shift}"
    again = np.flatnonzero(same & (step == 0)) + 1
    yield session[again], lambda i: f"position {position[again[i]] + shift} occurs twice"
    after = np.flatnonzero(same & (step > 1)) + 1
    on_page = position + shift
    yield session[after], lambda i: f"a gap between positions {on_page[after[i] - 1]} and {on_page[after[i]]}"


def repeated_documents(rows: pl.DataFrame, sessions: Bools, shift: int) -> Found:
    """Documents that a list has again, in the given sessions; positions in messages are shifted."""
    session, index = sorted_pairs(rows, "index", sessions)
    again = np.flatnonzero((session[1:] == session[:-1]) & (index[1:] == index[:-1])) + 1

    def text(i: int) -> str:
        same = rows.filter(pl.col("session") == session[again[i]], pl.col("index") == index[again[i]])
        return f"the same document at positions {', '.join(map(str, (same['position'] + shift).sort()))}"

    return session[again], text


def changing_contexts(rows: pl.DataFrame) -> Iterator[Found]:
    """Sessions whose rows have several values of a context, for each context."""
    for name in rows.columns:
        if name.startswith(CONTEXT):
            values = rows.group_by("session").agg(pl.col(name).unique().sort().head(3))
            several = values.filter(pl.col(name).list.len() > 1).sort("session")
            yield several["session"].to_numpy().astype(np.int64), _several_values(name, several[name])


def _several_values(name: str, values: pl.Series) -> Callable[[int], str]:
    return lambda i: f"expected one value of {name.removeprefix(CONTEXT)}, found {', '.join(map(quote, values[i]))}"


def sorted_pairs(rows: pl.DataFrame, name: str, sessions: Bools) -> tuple[Ints, Ints]:
    """The sessions and the known values of a column, of the rows of the given sessions, sorted.

    Each pair is sorted as one number: sorting a table of tens of millions of rows would take several times its memory.
    """
    known = rows.filter(pl.col(name).is_not_null()) if rows[name].null_count() else rows
    pairs = known["session"].to_numpy().astype(np.int64) << 32
    pairs |= known[name].to_numpy()
    if not sessions.all():
        pairs = pairs[sessions[pairs >> 32]]
    pairs.sort()
    return pairs >> 32, pairs & 0xFFFFFFFF


def quote(value: Any) -> str:
    """A value of the table as messages show it."""
    return "null" if value is None else f"'{value}'".replace("\0", "\\0")
