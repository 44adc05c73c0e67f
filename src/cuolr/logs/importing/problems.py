"""Checks of the long table of a log: all kinds of problems, with the first 20 of each."""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from cuolr.data.tables import ROW
from cuolr.types import Bools, Ints

MAX_PROBLEMS = 20
EVERY_DOCUMENT = "the table needs a row for each shown document, clicked or not"

# The sessions with one kind of problem, and the message of the i-th.
Found: TypeAlias = tuple[Ints, Callable[[int], str]]


def row_problems(rows: pl.LazyFrame, shown: pl.DataFrame) -> Iterator[str]:
    """Problems of single rows.

    Args:
        rows: The rows of the table, with their numbers.
        shown: The same rows resolved, with null for an invalid value; see `table`.
    """
    no_impression = ~pl.col("impression")
    clicked = (pl.col("click") == 1).fill_null(False)
    no_nul = ~pl.col("nul")
    kinds = {
        "expected ids without the character NUL, found {query_id}, {session_id} and {doc_id}": pl.col("nul"),
        "session_id: expected a value, found {session_id}": pl.col("session").is_null(),
        "query_id: {query_id} is not in the features": pl.col("query").is_null() & no_nul,
        "a click without an impression: expected a position and a doc_id, found {position} and {doc_id}": (
            no_impression & clicked
        ),
        "expected a position and a doc_id, found {position} and {doc_id}": no_impression & ~clicked,
        "position: expected a whole number, counted from 1, found {position}": (
            pl.col("impression") & pl.col("position").is_null()
        ),
        "doc_id: {doc_id} is not among the documents of query {query_id} in the features": (
            pl.col("impression") & pl.col("query").is_not_null() & pl.col("index").is_null() & no_nul
        ),
        "click: expected 0 or 1, found {click}": pl.col("click").is_null(),
    }
    if "logging_propensity" in shown.columns:
        text = "logging_propensity: expected a float32 number above 0 and at most 1, found {logging_propensity}"
        kinds[text] = pl.col("logging_propensity").is_null()
    if "examination" in shown.columns:
        kinds["examination: expected 0 or 1, found {examination}"] = pl.col("examination").is_null()
        kinds["a click on a document that was not examined"] = clicked & (pl.col("examination") == 0)
    if "reward" in shown.columns:
        kinds["reward: expected a finite number, found {reward}"] = pl.col("reward").is_null()
    if "timestamp" in shown.columns:
        kinds["timestamp: expected a finite number or a time, found {timestamp}"] = pl.col("timestamp").is_null()
    for text, bad in kinds.items():
        numbers = shown.filter(bad)[ROW]
        if not len(numbers):
            continue
        first = rows.filter(pl.col(ROW).is_in(numbers.sort().head(MAX_PROBLEMS).implode())).sort(ROW).collect()
        told = [
            f"row {row[ROW]}: {text.format(**{name: _quote(value) for name, value in row.items()})}"
            for row in first.iter_rows(named=True)
        ]
        yield from _with_rest(told, len(numbers))


def session_problems(shown: pl.DataFrame, session_ids: pl.Series) -> Iterator[str]:
    """Problems of the lists that the rows form.

    Args:
        shown: The resolved rows.
        session_ids: The id of each session.
    """
    rows = shown.filter(pl.col("session").is_not_null()) if shown["session"].null_count() else shown
    several = _several_queries(rows, len(session_ids))
    # Rows that were already reported are not reported again as a gap or a repeated document.
    unplaced = np.zeros(len(session_ids), np.bool_)
    unplaced[rows.filter(pl.col("position").is_null())["session"].to_numpy()] = True
    kinds: list[Found] = [
        (np.flatnonzero(several), lambda _: "expected rows of one query, found several queries"),
        *_bad_positions(rows, ~unplaced),
        _repeated_documents(rows, ~several),
    ]
    for sessions, text in kinds:
        first = enumerate(sessions[:MAX_PROBLEMS].tolist())
        told = [f"session {_quote(session_ids[session])}: {text(i)}" for i, session in first]
        yield from _with_rest(told, len(sessions))


def _several_queries(rows: pl.DataFrame, sessions: int) -> Bools:
    """[sessions] whether a session has rows of more than one query."""
    known = rows.filter(pl.col("query").is_not_null()) if rows["query"].null_count() else rows
    session, query = known["session"].to_numpy(), known["query"].to_numpy()
    query_of_session = np.zeros(sessions, np.int32)
    query_of_session[session] = query
    several = np.zeros(sessions, np.bool_)
    several[session[query != query_of_session[session]]] = True
    return several


def _bad_positions(rows: pl.DataFrame, sessions: Bools) -> Iterator[Found]:
    """Lists that do not start at position 1, repeated positions and gaps, in the given sessions."""
    session, position = _sorted_pairs(rows, "position", sessions)
    same, step = session[1:] == session[:-1], np.diff(position)
    late = np.flatnonzero(np.concatenate([[True], ~same])[: len(session)] & (position != 1))
    yield session[late], lambda i: f"the first position is {position[late[i]]}, expected 1; {EVERY_DOCUMENT}"
    again = np.flatnonzero(same & (step == 0)) + 1
    yield session[again], lambda i: f"position {position[again[i]]} occurs twice"
    after = np.flatnonzero(same & (step > 1)) + 1
    yield (
        session[after],
        lambda i: f"a gap between positions {position[after[i] - 1]} and {position[after[i]]}; {EVERY_DOCUMENT}",
    )


def _repeated_documents(rows: pl.DataFrame, sessions: Bools) -> Found:
    session, index = _sorted_pairs(rows, "index", sessions)
    again = np.flatnonzero((session[1:] == session[:-1]) & (index[1:] == index[:-1])) + 1

    def text(i: int) -> str:
        same = rows.filter(pl.col("session") == session[again[i]], pl.col("index") == index[again[i]])
        return f"the same document at positions {', '.join(map(str, same['position'].sort()))}"

    return session[again], text


def _sorted_pairs(rows: pl.DataFrame, name: str, sessions: Bools) -> tuple[Ints, Ints]:
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


def _with_rest(told: list[str], total: int) -> Iterator[str]:
    """The first problems of a kind, and the number of the others."""
    yield from told[:MAX_PROBLEMS]
    if total > MAX_PROBLEMS:
        yield f"… and {total - MAX_PROBLEMS} more of this kind"


def _quote(value: Any) -> str:
    return "null" if value is None else f"'{value}'".replace("\0", "\\0")
