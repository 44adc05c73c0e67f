"""What can be wrong with the long table of a log: every kind is looked for, and the first 20 of each are told."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from cuolr.data.tables import ROW

MAX_PROBLEMS = 20


def row_problems(table: Path, rows: pl.LazyFrame, shown: pl.DataFrame) -> Iterator[str]:
    """What is wrong with single rows.

    Args:
        table: Where the rows are from.
        rows: As they are in the table, with their numbers.
        shown: The same rows resolved, a null where there is a problem; see `log_import`.
    """
    no_impression = ~pl.col("impression")
    clicked = (pl.col("click") == 1).fill_null(False)
    kinds = {
        "session_id: expected a value, found {session_id}": pl.col("session").is_null(),
        "query_id: expected a query that the features have, found {query_id}": pl.col("query").is_null(),
        "a click without an impression: expected a position and a doc_id with it, found {position} and {doc_id}": (
            no_impression & clicked
        ),
        "expected a position and a doc_id, found {position} and {doc_id}": no_impression & ~clicked,
        "position: expected a whole number from 1 up, found {position}": (
            pl.col("impression") & pl.col("position").is_null()
        ),
        "doc_id: expected a document that the features have for query {query_id}, found {doc_id}": (
            pl.col("impression") & pl.col("query").is_not_null() & pl.col("slot").is_null()
        ),
        "click: expected 0 or 1, found {click}": pl.col("click").is_null(),
    }
    if "logging_propensity" in shown.columns:
        text = "logging_propensity: expected a number above 0, at most 1, found {logging_propensity}"
        kinds[text] = pl.col("logging_propensity").is_null()
    if "examination" in shown.columns:
        kinds["examination: expected 0 or 1, found {examination}"] = pl.col("examination").is_null()
        kinds["a click on a document that was not examined"] = clicked & (pl.col("examination") == 0)
    if "timestamp" in shown.columns:
        kinds["timestamp: expected a value, found {timestamp}"] = pl.col("timestamp").is_null()
    for text, bad in kinds.items():
        numbers = shown.filter(bad)[ROW]
        if not len(numbers):
            continue
        first = rows.filter(pl.col(ROW).is_in(numbers.sort().head(MAX_PROBLEMS).implode())).sort(ROW).collect()
        told = [
            f"row {row[ROW]}: {text.format(**{name: _quote(value) for name, value in row.items()})}"
            for row in first.iter_rows(named=True)
        ]
        yield from _with_rest(table, told, len(numbers))


def session_problems(table: Path, shown: pl.DataFrame, session_ids: pl.Series) -> Iterator[str]:
    """What is wrong with the lists that the rows make up.

    Args:
        table: Where the rows are from.
        shown: The rows, resolved.
        session_ids: The id of each session.
    """
    in_session = shown.filter(pl.col("session").is_not_null())
    for session, texts in (
        _several_queries(in_session),
        *_bad_positions(in_session),
        _repeated_documents(in_session),
    ):
        told = [f"session {_quote(session_ids[int(s)])}: {text}" for s, text in zip(session, texts, strict=False)]
        yield from _with_rest(table, told, len(session))


# Sessions with a problem, in order, and how to say it for the first of them.
Found: TypeAlias = tuple[npt.NDArray[Any], list[str]]


def _several_queries(rows: pl.DataFrame) -> Found:
    queries = rows.group_by("session").agg(least=pl.col("query").min(), greatest=pl.col("query").max())
    session = queries.filter(pl.col("least") != pl.col("greatest"))["session"].sort().to_numpy()
    return session, ["expected rows of one query, found several"] * MAX_PROBLEMS


def _bad_positions(rows: pl.DataFrame) -> Iterator[Found]:
    """Lists that do not start at 1, positions that are taken twice, and gaps.

    Sessions with a row that has no position at all are left out: that row is told already.
    """
    unplaced = rows.filter(pl.col("position").is_null())["session"].unique()
    placed = rows.filter(~pl.col("session").is_in(unplaced.implode())).select("session", "position")
    session, position = (placed.sort("session", "position")[name].to_numpy() for name in ("session", "position"))
    same = session[1:] == session[:-1]
    starts = np.concatenate([[True], ~same])[: len(session)] & (position != 1)
    yield session[starts], [f"expected to start at position 1, found {p}" for p in position[starts][:MAX_PROBLEMS]]
    step = np.diff(position)
    repeats, gaps = same & (step == 0), same & (step > 1)
    yield session[1:][repeats], [f"position {p} twice" for p in position[1:][repeats][:MAX_PROBLEMS]]
    ends = zip(position[:-1][gaps][:MAX_PROBLEMS], position[1:][gaps][:MAX_PROBLEMS], strict=True)
    yield session[1:][gaps], [f"a gap between the positions {before} and {after}" for before, after in ends]


def _repeated_documents(rows: pl.DataFrame) -> Found:
    known = rows.filter(pl.col("slot").is_not_null())
    repeated = known.filter(pl.struct("session", "query", "slot").is_duplicated())
    lists = repeated.sort("position").group_by("session", "query", "slot", maintain_order=True).agg("position")
    lists = lists.sort("session", "slot")
    texts = [f"the same document at the positions {_listed(p)}" for p in lists["position"].head(MAX_PROBLEMS)]
    return lists["session"].to_numpy(), texts


def _with_rest(table: Path, told: list[str], total: int) -> Iterator[str]:
    """The first problems of a kind, and how many there are besides."""
    for problem in told[:MAX_PROBLEMS]:
        yield f"{table}: {problem}"
    if total > MAX_PROBLEMS:
        yield f"{table}: … and {total - MAX_PROBLEMS} more with this problem"


def _quote(value: Any) -> str:
    return "null" if value is None else f"'{value}'"


def _listed(positions: pl.Series) -> str:
    return ", ".join("null" if position is None else str(position) for position in positions)
