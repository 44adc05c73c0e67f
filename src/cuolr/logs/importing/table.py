"""A log as one long table with a row for each shown document.

Columns: query_id, session_id, position (from 1), doc_id, click (0 or 1, true or false) and, optionally,
logging_propensity, examination (0 or 1), timestamp and reward; others are ignored. The features are in a separate
table.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from cuolr.config import Range, check_arguments
from cuolr.data.frames import Table, is_path, to_polars
from cuolr.data.tables import ROW, can_be_ids, read_errors, scan_table
from cuolr.errors import InputError
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.columns import index_dtype
from cuolr.logs.importing.problems import row_problems, session_problems
from cuolr.logs.log_folder import one_each
from cuolr.registry import did_you_mean
from cuolr.types import Candidates

IDS = ("query_id", "session_id", "doc_id")
NUMBERS = ("position", "click", "logging_propensity", "examination", "reward")
REQUIRED = ("query_id", "session_id", "position", "doc_id", "click")
OPTIONAL = ("logging_propensity", "examination", "timestamp", "reward")
# Other separators of a CSV file, and what to do about them.
SEPARATORS = {
    "\t": "tabs; rename the file to .tsv",
    ";": "';'; save the file with commas",
    "|": "'|'; save the file with commas",
}


def read_log_table(table: Table, candidates: Candidates, k: int | None = None) -> ClickLog:
    """Read and check a long table.

    Args:
        table: A Parquet, CSV or JSON lines file, or a data frame; rows in any order.
        candidates: The documents with their ids; every document in the table must be among those of its query.
        k: Length of the lists; longer ones are truncated. None = the longest.

    Returns:
        A row per session, sorted by session id, including sessions without a click. The timestamp of a session is the
        earliest of its rows.

    Raises:
        InputError: All problems, up to 20 of each kind.
    """
    if k is not None:
        check_arguments(k=(k, Range(1)))
    place = Path(table) if is_path(table) else "the table"
    rows = _scan(table, place)
    with read_errors(place):
        sessions = rows.select("session_id").drop_nulls().unique().sort("session_id").collect(engine="streaming")
        shown = _resolve(rows, sessions, candidates).collect(engine="streaming")
    if not len(shown):
        raise InputError(f"{place}: expected a row for each shown document, found no rows")
    problems = [*row_problems(rows, shown), *session_problems(shown, sessions["session_id"])]
    if problems:
        raise InputError([f"{place}: {problem}" for problem in problems])
    return _fill(shown, candidates, len(sessions), k)


def _scan(table: Table, place: Path | str) -> pl.LazyFrame:
    """A lazy frame of the known columns and the number of each row."""
    if isinstance(place, Path):
        rows = scan_table(place, text_columns=(*IDS, *NUMBERS))
    else:
        rows = to_polars(table, place).lazy().with_row_index(ROW, offset=1)
    with read_errors(place):
        schema = rows.drop(ROW).collect_schema()
    if problems := list(_column_problems(schema)):
        raise InputError([f"{place}: {problem}" for problem in problems])
    known = [name for name in (*REQUIRED, *OPTIONAL) if name in schema]
    # Numeric session ids stay numbers, to keep their order.
    as_text = [name for name in IDS if name != "session_id" or not schema[name].is_integer()]
    return rows.select(ROW, *known).with_columns(pl.col(as_text).cast(pl.String))


def _column_problems(schema: pl.Schema) -> Iterator[str]:
    if len(schema) == 1 and (used := [mark for mark in SEPARATORS if mark in schema.names()[0]]):
        yield f"expected columns separated by commas, found {SEPARATORS[used[0]]}"
        return
    yield from (_missing(name, schema.names()) for name in REQUIRED if name not in schema)
    for name in NUMBERS:
        dtype = schema.get(name, pl.Float64())
        if not (dtype.is_numeric() or dtype in (pl.Boolean, pl.String)):
            yield f"column '{name}': expected numbers, found {dtype}"
    for name in IDS:
        if name in schema and not can_be_ids(schema[name]):
            yield f"column '{name}': expected text or whole numbers, found {schema[name]}"
    timestamp = schema.get("timestamp", pl.Int64())
    if not (timestamp.is_numeric() or timestamp.is_temporal()):
        yield f"column 'timestamp': expected numbers or dates and times, found {timestamp}"


def _missing(name: str, found: list[str]) -> str:
    return f"column '{name}' is missing{did_you_mean(name, found)}; rename your column; found: {', '.join(found)}"


def _resolve(rows: pl.LazyFrame, sessions: pl.DataFrame, candidates: Candidates) -> pl.LazyFrame:
    """The rows with ids replaced by indices, and all values as numbers; null = invalid.

    Columns: the row's number, impression (whether there is a position and a document), nul (whether an id contains that
    character, which NumPy drops at the end), session, query, index, position, click, and the optional ones.
    """
    queries, documents = _index(candidates)
    numbered = (
        rows.join(sessions.with_row_index("session").lazy(), on="session_id", how="left")
        .join(queries.lazy(), on="query_id", how="left")
        .join(documents.lazy(), on=["query", "doc_id"], how="left")
    )
    schema = rows.collect_schema()
    position = _number("position", schema)
    texts = [name for name in IDS if schema[name] == pl.String]
    columns = {
        "impression": pl.col("position").is_not_null() & pl.col("doc_id").is_not_null(),
        "nul": pl.any_horizontal(pl.col(texts).str.contains("\0", literal=True).fill_null(False)),
        "position": _where(position, (position >= 1) & (position < 2**31) & (position == position.floor()), pl.Int32),
        "click": _binary("click", schema),
    }
    if "logging_propensity" in schema:
        propensity = _number("logging_propensity", schema)
        # Checked in the stored type: a tiny number is 0 in float32.
        possible = (propensity.cast(pl.Float32) > 0) & (propensity <= 1)
        columns["logging_propensity"] = _where(propensity, possible, pl.Float32)
    if "examination" in schema:
        columns["examination"] = _binary("examination", schema)
    if "reward" in schema:
        reward = _number("reward", schema)
        columns["reward"] = _where(reward, reward.cast(pl.Float32).is_finite(), pl.Float32)
    if "timestamp" in schema:
        columns["timestamp"] = _plain_time(schema["timestamp"])
    return numbered.select(ROW, "session", "query", "index", **columns)


def _index(candidates: Candidates) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The queries by id, and the documents by query and id."""
    if candidates.document_ids is None:
        raise InputError(
            "the features have no document ids to match doc_id with; in LETOR, add them as comments: '# docid = ID'"
        )
    queries = pl.DataFrame({"query_id": candidates.query_ids, "query": np.arange(candidates.n_queries, dtype=np.int32)})
    query = candidates.query_of_document
    index = np.arange(candidates.n_documents) - candidates.offsets[query]
    documents = pl.DataFrame(
        {"query": query.astype(np.int32), "doc_id": candidates.document_ids, "index": index.astype(np.int32)}
    ).filter(pl.col("doc_id") != "")
    repeated = documents.filter(pl.struct("query", "doc_id").is_duplicated())
    if len(repeated):
        query_id, document_id = candidates.query_ids[repeated["query"][0]], repeated["doc_id"][0]
        raise InputError(
            f"the features have {len(repeated)} documents that share an id within a query, such as '{document_id}' of "
            f"query '{query_id}'; give each document of a query its own id"
        )
    return queries, documents


def _number(name: str, schema: pl.Schema) -> pl.Expr:
    """A column as float64; null where it is not a number."""
    column = pl.col(name)
    return (column.str.strip_chars() if schema[name] == pl.String else column).cast(pl.Float64, strict=False)


def _binary(name: str, schema: pl.Schema) -> pl.Expr:
    """A column as 0 and 1; null where it is neither."""
    if schema[name] == pl.String:
        words = pl.col(name).str.strip_chars().str.to_lowercase()
        value = words.replace({"true": "1", "false": "0"}).cast(pl.Float64, strict=False)
    else:
        value = _number(name, schema)
    return _where(value, (value == 0) | (value == 1), pl.UInt8)


def _where(value: pl.Expr, good: pl.Expr, dtype: type[pl.DataType]) -> pl.Expr:
    return pl.when(good).then(value).cast(dtype)


def _plain_time(dtype: pl.DataType) -> pl.Expr:
    """Numbers unchanged, null where not finite; dates and times in UTC."""
    column = pl.col("timestamp")
    if dtype.is_float():
        return pl.when(column.is_finite()).then(column)
    if dtype.is_numeric():
        return column
    if isinstance(dtype, pl.Datetime) and dtype.time_zone is not None:
        column = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    return column.cast(pl.Datetime("us"))


def _fill(shown: pl.DataFrame, candidates: Candidates, sessions: int, k: int | None) -> ClickLog:
    """The rows of each session as a list."""
    longest: Any = shown["position"].max()
    k = longest if k is None else k
    kept = shown.filter(pl.col("position") <= k)
    session, position = kept["session"].to_numpy(), kept["position"].to_numpy() - 1

    def lists(name: str, dtype: npt.DTypeLike, nothing: float) -> npt.NDArray[Any]:
        values = np.full((sessions, k), nothing, dtype)
        values[session, position] = kept[name].to_numpy()
        return values

    query = np.empty(sessions, np.int32)
    query[session] = kept["query"].to_numpy()
    known, timestamp = shown.columns, None
    if "timestamp" in known:
        earliest = shown.group_by("session").agg(pl.col("timestamp").min()).sort("session")
        timestamp = earliest["timestamp"].to_numpy()
    return ClickLog(
        candidates=candidates,
        query=query,
        ranking=lists("index", index_dtype(candidates), -1),
        clicks=lists("click", np.uint8, 0),
        count=one_each(sessions),
        logging_propensity=lists("logging_propensity", np.float32, 1) if "logging_propensity" in known else None,
        examination=lists("examination", np.uint8, 0) if "examination" in known else None,
        timestamp=timestamp,
        reward=lists("reward", np.float32, 0) if "reward" in known else None,
    )
