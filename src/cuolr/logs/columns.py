"""The columns of `sessions.parquet`: types and constraints, and what several logs have in common."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from cuolr.data.column_kinds import looks_like_label
from cuolr.data.text_sizes import text_array
from cuolr.errors import InputError
from cuolr.logs.clicklog import CONTEXT, ClickLog
from cuolr.types import Bools, Candidates, Strings

REQUIRED = ("query", "ranking", "clicks")
# Ids of a session, which no learner needs.
IDS = ("session_id", "user_id")
OPTIONAL = (
    "logging_propensity",
    "examination",
    "timestamp",
    "reward",
    "page_position",
    "randomised",
    "last_click",
    *IDS,
)


# Columns that can be filled in where a log does not have them.
FILLED = (*IDS, "page_position")


def index_dtype(candidates: Candidates) -> np.dtype[np.int16] | np.dtype[np.int32]:
    """The smallest type that holds every candidate index of these queries."""
    small = candidates.sizes.max(initial=0) <= np.iinfo(np.int16).max
    return np.dtype(np.int16) if small else np.dtype(np.int32)


def expected_types(
    file: Path, stored: pl.Schema, candidates: Candidates, k: int, aggregated: bool, counted: bool = False
) -> dict[str, pl.DataType]:
    """The type to read each stored column as, or an error that lists all problems with the columns.

    Lists of other integer, float and Boolean types are also accepted.
    """
    average = pl.Float64() if aggregated else pl.UInt8()
    index = pl.Int16() if index_dtype(candidates) == np.int16 else pl.Int32()
    expected: dict[str, pl.DataType] = {
        "query": pl.Int32(),
        "ranking": pl.Array(index, k),
        "clicks": pl.Array(average, k),
        "count": pl.Int64(),
        "logging_propensity": pl.Array(pl.Float32(), k),
        "examination": pl.Array(average, k),
        "timestamp": stored.get("timestamp", pl.Int64()),
        "reward": pl.Array(pl.Float64() if aggregated else pl.Float32(), k),
        "page_position": pl.Array(pl.Int32(), k),
        "randomised": pl.Boolean(),
        "session_id": pl.String(),
        "user_id": pl.String(),
        "last_click": pl.Int16(),
        **{name: found for name, found in stored.items() if _is_context(name, found)},
    }
    required = (*REQUIRED, "count") if aggregated or counted else REQUIRED
    known = (*required, *OPTIONAL, *(name for name in expected if name.startswith(CONTEXT)))
    problems = [f"{file}: column '{name}' is missing" for name in required if name not in stored]
    problems += [
        f"{file}: unexpected column '{name}'; known: {', '.join(known)}" for name in stored if name not in known
    ]
    for name, found in stored.items():
        if name in known and not _fits(found, expected[name]):
            problems.append(f"{file}: column '{name}': expected {expected[name]}, found {found}")
    if problems:
        raise InputError(problems)
    return {name: expected[name] for name in stored}


def _is_context(name: str, found: pl.DataType) -> bool:
    """Whether a column describes the session; a column that looks like a label does not."""
    kind = found.is_numeric() or found in (pl.String, pl.Boolean)
    return name.startswith(CONTEXT) and kind and not looks_like_label(name.removeprefix(CONTEXT))


def _fits(found: pl.DataType, expected: pl.DataType) -> bool:
    """Whether a column can be read as the expected type; its values may still be invalid."""
    if not isinstance(expected, pl.Array):
        return found == expected or (expected.is_integer() and found.is_integer())
    if isinstance(found, pl.Array) and found.shape != expected.shape:
        return False
    if not isinstance(found, pl.Array | pl.List):
        return False
    inner: Any = found.inner
    if expected.inner.is_float():
        return bool(inner.is_numeric())
    return bool(inner.is_integer() or inner == pl.Boolean)


def to_numpy(file: Path, column: pl.Series) -> npt.NDArray[Any]:
    """A column as an array, or an error if a value is missing."""
    nulls = (column.explode() if isinstance(column.dtype, pl.Array) else column).null_count()
    if nulls:
        raise InputError(f"{file}: column '{column.name}': expected a value in every row, found {nulls} nulls")
    if column.name in IDS:
        return id_array(column)
    return text_array(column, f"{file}: column '{column.name}'") if column.dtype == pl.String else column.to_numpy()


def id_array(column: pl.Series) -> Strings:
    """A column of ids, of which nearly all differ: NumPy's strings of any length take a third of the memory."""
    return column.cast(pl.String).to_numpy().astype(np.dtypes.StringDType())


def check_rows(file: Path, log: ClickLog, first_row: int) -> None:
    """Raise if rows are invalid: one line per kind of problem, with the first such row."""
    problems = []
    for bad, problem in _bad_values(log):
        rows = np.flatnonzero(bad.reshape(len(log), -1).any(axis=1))
        if len(rows):
            problems.append(f"{file}: row {first_row + rows[0] + 1}: {problem} ({len(rows)} such rows from there on)")
    if problems:
        raise InputError(problems)


def _bad_values(log: ClickLog) -> Iterator[tuple[Bools, str]]:
    """Each kind of problem: a mask [M] or [M, positions] of where it occurs, and its message."""
    n_queries = log.candidates.n_queries
    unknown_query = (log.query < 0) | (log.query >= n_queries)
    yield unknown_query, f"expected a query between 0 and {n_queries - 1}"
    sizes = log.candidates.sizes[np.where(unknown_query, 0, log.query)][:, None]
    out_of_range = (log.ranking < -1) | (log.ranking >= sizes)
    yield out_of_range & ~unknown_query[:, None], "ranking: expected candidate indices of the query, or −1"
    where = log.where
    yield where[:, 1:] & ~where[:, :-1], "ranking: expected −1 only after the last document"
    in_order = np.sort(log.ranking, axis=1)
    repeated = (in_order[:, 1:] == in_order[:, :-1]) & (in_order[:, 1:] >= 0)
    yield repeated, "ranking: expected each document once"
    yield (log.clicks != 0) & ~where, "clicks: expected none where nothing was shown"
    if log.aggregated:
        yield ~np.isfinite(log.clicks), "clicks: expected finite numbers"
    else:
        yield log.clicks > 1, "clicks: expected 0 or 1"
    yield log.count < 1, "count: expected 1 or more"
    if log.logging_propensity is not None:
        possible = (log.logging_propensity > 0) & (log.logging_propensity <= 1)
        yield where & ~possible, "logging_propensity: expected more than 0 and at most 1"
    if log.examination is not None:
        possible = (log.examination >= 0) & (log.examination <= 1)
        yield ~possible, "examination: expected numbers between 0 and 1"
    if log.reward is not None:
        yield ~(np.isfinite(log.reward) & (log.reward >= 0)), "reward: expected finite numbers from 0 up"
        yield (log.reward > 0) & (log.clicks == 0), "reward: expected 0 where there is no click"
    if log.page_position is not None:
        yield (log.page_position < 0) & where, "page_position: expected 0 or more where a document was shown"
        yield (log.page_position != -1) & ~where, "page_position: expected −1 where nothing was shown"
        yield (np.diff(log.page_position) <= 0) & where[:, 1:], "page_position: expected to increase down the list"
    if log.last_click is not None and log.page_position is not None:
        last = log.last_click[:, None]
        yield (last < -1) | (last > log.page_position), "last_click: expected −1 to the position above the document"
    if log.timestamp is not None and log.timestamp.dtype.kind == "f":
        yield ~np.isfinite(log.timestamp), "timestamp: expected finite numbers"


def common_columns(examples: Sequence[ClickLog]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns of the merged log, and those that some logs lack."""
    names = dict.fromkeys(name for example in examples for name in example.columns)
    common = [name for name in names if name in FILLED or all(name in example.columns for example in examples)]
    return tuple(common), tuple(name for name in names if name not in common)


def common_types(
    paths: Sequence[Path], examples: Sequence[ClickLog], columns: Sequence[str]
) -> dict[str, np.dtype[Any]]:
    """A type for the numbers of each column with one value for a session; raises if some are texts in other logs."""
    types: dict[str, np.dtype[Any]] = {}
    for name in columns:
        found = {path: log.columns[name] for path, log in zip(paths, examples, strict=True) if name in log.columns}
        texts = [path for path, values in found.items() if values.dtype.kind == "U"]
        if texts and len(texts) < len(found):
            other = next(path for path in found if path not in texts)
            raise InputError(
                f"column '{name}': expected numbers or texts in all logs; {texts[0]} has texts, {other} not"
            )
        if not texts and next(iter(found.values())).ndim == 1 and name != "query":
            types[name] = np.result_type(*found.values())
    if "timestamp" in types and types["timestamp"].kind == "M":
        types["timestamp"] = np.dtype("datetime64[us]")
    return types
