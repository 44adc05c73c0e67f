"""The rows of a log's table with numbers for ids."""

import numpy as np
import polars as pl

from cuolr.data.feature_tables import LOGGED_ID, VARIANT
from cuolr.data.tables import ROW, read_errors
from cuolr.errors import InputError
from cuolr.logs.clicklog import CONTEXT
from cuolr.logs.importing.import_options import IDS, MISSING
from cuolr.logs.importing.log_rows import LogRows
from cuolr.progress import Share, no_progress, share_of
from cuolr.types import Candidates

# Positions are stored in int32, counted from 1.
MAX_POSITION = 2**31 - 2
# Dates and times in texts: with seconds and their fractions, or to the minute.
CLOCKS = ("%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M")

# Rows whose ids are looked up at a time, and the share of the time to read rows before that, roughly.
ROWS_AT_A_TIME = 1 << 19
READING_SHARE = 0.2


class DocumentIndex:
    """The queries by id, and the documents by query and id.

    Attributes:
        queries: Columns query_id and query, its number.
        documents: Columns query, doc_id and index, the number of the document within the query; and `VARIANT`, if
            documents have variants.
        keys: What a document is found by.
    """

    def __init__(self, candidates: Candidates, variants: pl.DataFrame | None = None) -> None:
        """Index the candidates.

        Args:
            candidates: The documents of each query.
            variants: The logged ids of documents with variants, see `named_variants`; None = there are none.

        Raises:
            InputError: If they have no ids, or two documents of a query have the same.
        """
        if candidates.document_ids is None:
            raise InputError(
                "the features have no document ids to match doc_id with; in LETOR, add them as comments: '# docid = ID'"
            )
        queries = pl.DataFrame(
            {"query_id": candidates.query_ids, "query": np.arange(candidates.n_queries, dtype=np.int32)}
        )
        query = candidates.query_of_document
        index = np.arange(candidates.n_documents) - candidates.offsets[query]
        documents = pl.DataFrame(
            {"query": query.astype(np.int32), "doc_id": candidates.document_ids, "index": index.astype(np.int32)}
        ).filter(pl.col("doc_id") != "")
        repeated = documents.filter(pl.struct("query", "doc_id").is_duplicated())
        if len(repeated):
            query_id, document_id = candidates.query_ids[repeated["query"][0]], repeated["doc_id"][0]
            raise InputError(
                f"the features have {len(repeated)} documents that share an id within a query, such as '{document_id}' "
                f"of query '{query_id}'; give each document of a query its own id"
            )
        self.keys = ["query", "doc_id"]
        if variants is not None:
            ids = variants.select("query_id", "doc_id", LOGGED_ID, VARIANT).join(queries, on="query_id")
            documents = documents.join(ids, on=self.keys).select("query", VARIANT, "index", doc_id=LOGGED_ID)
            self.keys.append(VARIANT)
        self.queries, self.documents = queries.lazy(), documents.lazy()


def read_sessions(rows: LogRows) -> pl.Series:
    """The ids of all sessions, sorted."""
    found = []
    for part, place in rows.scans():
        with read_errors(place):
            found.append(part.select("session_id").drop_nulls().unique().collect(engine="streaming"))
    return pl.concat(found).unique().sort("session_id")["session_id"]


def resolve(
    rows: LogRows, session_ids: pl.Series, documents: DocumentIndex, progress: Share = no_progress
) -> pl.DataFrame:
    """The rows with ids replaced by indices, and all values as numbers; null = invalid.

    Columns: the row's number, impression (whether there is a position and a document), nul (whether an id has that
    character, which NumPy drops at the end), session, query, index, position (from 0 up, as in the table), click, and
    the optional ones; and whether clicks and rewards are repaired here (see `problems.repair_kinds`). Progress takes
    the share of the rows that were read since the last call.
    """
    sessions = session_ids.to_frame().with_row_index("session").lazy()
    columns = _columns(rows.schema)
    found = []
    for part, place in rows.scans():
        with read_errors(place):
            read = rows.followed(part, share_of(progress, READING_SHARE)).collect(engine="streaming")
            for some in read.iter_slices(ROWS_AT_A_TIME):
                numbered = (
                    some.lazy()
                    .join(sessions, on="session_id", how="left")
                    .join(documents.queries, on="query_id", how="left")
                    .join(documents.documents, on=documents.keys, how="left")
                )
                # Within the errors of reading: polars cannot make a text of a day in the year 5,000,000.
                found.append(numbered.select(ROW, "session", "query", "index", **columns).collect())
                progress((1 - READING_SHARE) * len(some) / rows.total)
    return pl.concat(found)


def from_one(shown: pl.DataFrame, first: int) -> pl.DataFrame:
    """Positions that count from 1, null where they are before the first."""
    if first == 0:
        return shown.with_columns(pl.col("position") + 1)
    return shown.with_columns(pl.when(pl.col("position") >= 1).then(pl.col("position")))


def position_number(schema: pl.Schema) -> pl.Expr:
    """Positions as in the table; null where they are not whole numbers from 0 up."""
    position = _number("position", schema)
    whole = (position >= 0) & (position <= MAX_POSITION) & (position == position.floor())
    return _where(position, whole, pl.Int32)


def _columns(schema: pl.Schema) -> dict[str, pl.Expr]:
    """All but the ids."""
    texts = [name for name in IDS if schema[name] == pl.String]
    clicks = _count("click", schema)
    clicked = clicks.clip(upper_bound=1)
    columns = {
        "impression": pl.col("position").is_not_null() & pl.col("doc_id").is_not_null(),
        "nul": pl.any_horizontal(pl.col(texts).str.contains("\0", literal=True).fill_null(False)),
        "position": position_number(schema),
        "click": clicked,
        "several_clicks": clicks > 1,
    }
    if "logging_propensity" in schema:
        propensity = _number("logging_propensity", schema)
        # Checked in the stored type: a tiny number is 0 in float32.
        possible = (propensity.cast(pl.Float32) > 0) & (propensity <= 1)
        columns["logging_propensity"] = _where(propensity, possible, pl.Float32)
    if "examination" in schema:
        columns["examination"] = _binary("examination", schema)
    if "randomised" in schema:
        columns["randomised"] = _binary("randomised", schema)
    if "reward" in schema:
        reward = _number("reward", schema)
        columns["reward"] = _where(reward.clip(lower_bound=0), reward.cast(pl.Float32).is_finite(), pl.Float32)
        columns["negative_reward"] = reward < 0
        columns["unclicked_reward"] = (reward > 0) & (clicks == 0)
        columns["click"] = pl.when(columns["unclicked_reward"]).then(pl.lit(1, pl.UInt8)).otherwise(clicked)
    if "timestamp" in schema:
        columns["timestamp"] = _plain_time(schema["timestamp"])
    if "user_id" in schema:
        # NumPy would drop that character at the end.
        columns["user_id"] = pl.col("user_id").str.replace_all("\0", "", literal=True).fill_null("")
    for name in schema:
        if name.startswith(CONTEXT):
            columns[name] = pl.col(name).fill_null(MISSING)
    return columns


def _number(name: str, schema: pl.Schema) -> pl.Expr:
    """A column as float64; null where it is not a number."""
    column = pl.col(name)
    return (column.str.strip_chars() if schema[name] == pl.String else column).cast(pl.Float64, strict=False)


def _binary(name: str, schema: pl.Schema) -> pl.Expr:
    """A column as 0 and 1; null where it is neither."""
    value = _number_or_word(name, schema)
    return _where(value, (value == 0) | (value == 1), pl.UInt8)


def _count(name: str, schema: pl.Schema) -> pl.Expr:
    """A column as a number from 0 to 255, or 255 if it is more; null where it is not a whole number."""
    value = _number_or_word(name, schema)
    return _where(value.clip(upper_bound=255), (value >= 0) & value.is_finite() & (value == value.floor()), pl.UInt8)


def _number_or_word(name: str, schema: pl.Schema) -> pl.Expr:
    """A column as float64, with true as 1 and false as 0; null where it is neither."""
    if schema[name] != pl.String:
        return _number(name, schema)
    words = pl.col(name).str.strip_chars().str.to_lowercase()
    return words.replace({"true": "1", "false": "0"}).cast(pl.Float64, strict=False)


def _where(value: pl.Expr, good: pl.Expr, dtype: type[pl.DataType]) -> pl.Expr:
    return pl.when(good).then(value).cast(dtype)


def _plain_time(dtype: pl.DataType) -> pl.Expr:
    """Numbers unchanged, null where not finite; dates and times in UTC; null where a text is none (ISO 8601)."""
    column = pl.col("timestamp")
    if dtype == pl.String:
        text = column.str.strip_chars().str.replace(" ", "T", literal=True)
        zoned = [text.str.to_datetime(f"{form}%#z", time_unit="us", time_zone="UTC", strict=False) for form in CLOCKS]
        plain = [text.str.to_datetime(form, time_unit="us", strict=False) for form in CLOCKS]
        day = text.str.to_date("%Y-%m-%d", strict=False).cast(pl.Datetime("us"))
        return pl.coalesce(*(time.dt.replace_time_zone(None) for time in zoned), *plain, day)
    if dtype.is_float():
        return pl.when(column.is_finite()).then(column)
    if dtype.is_decimal():
        return column.cast(pl.Float64)
    if dtype.is_integer():  # polars has wider ones, NumPy not
        return column.cast(pl.Int64, strict=False) if dtype in (pl.Int128, pl.UInt128) else column
    if isinstance(dtype, pl.Datetime) and dtype.time_zone is not None:
        column = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    return column.cast(pl.Datetime("us"))
