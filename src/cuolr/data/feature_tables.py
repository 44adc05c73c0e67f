"""Features from up to three tables: of documents, of queries, of documents for a query; and from the log itself."""

import json
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Self

import numpy as np
import polars as pl

from cuolr.data.column_values import known_text, not_understood, number_values
from cuolr.data.feature_options import FeatureOptions
from cuolr.data.features import IDS, encoded, read_feature_table, read_raw_features, warn_of_unknown_drops
from cuolr.data.frames import Table, is_path
from cuolr.data.tables import is_table
from cuolr.errors import InputError, InputWarning
from cuolr.progress import Stages, no_stages
from cuolr.types import Candidates, FeatureRecipe, Ints, Strings

# Of the hash that names a variant: two of a thousand variants of a document have the same with a probability of 2e-9.
HASH_BYTES = 6
VARIANT_ID = re.compile(rf"#[0-9a-f]{{{2 * HASH_BYTES}}}$")


def logged_ids(candidates: Candidates) -> Strings:
    """[n_documents] the ids of documents in the log that was imported, the same for all variants of a document."""
    names = candidates.document_names
    if candidates.recipe is None or not candidates.recipe.impression:
        return names
    return np.array([VARIANT_ID.sub("", name) for name in names.tolist()], np.str_)


def first_variants(candidates: Candidates) -> Ints:
    """[n_documents] the row of the first variant of the same document and query."""
    rows = np.arange(candidates.n_documents)
    if candidates.recipe is None or not candidates.recipe.impression:
        return rows
    _, number = np.unique(logged_ids(candidates), return_inverse=True)
    pair = candidates.query_of_document * (number.max(initial=0) + 1) + number
    _, first, of_row = np.unique(pair, return_index=True, return_inverse=True)
    return rows[first][of_row]


# Columns that tell the variants of a document apart, and its id in the log; names that no user's table has.
VARIANT, LOGGED_ID = "(variant)", "(doc_id)"


@dataclass(frozen=True)
class FeatureTables:
    """Where the features of documents are. Each table is a file or a data frame, see `read_candidates`.

    Attributes:
        query_document: Columns query_id and doc_id, and features of the document for the query. It says which documents
            are candidates of a query. None = those that the log shows for it.
        document: Column doc_id, and features of the document.
        query: Column query_id, and features of the query.
        impression: Columns of the log with features of the document when it was shown, such as its price.
        options: What is a feature, and what to leave out.
        recipe: How columns become numbers, as another log or a model has it (`Candidates.recipe`,
            `RankingPolicy.recipe`). None = it is decided by the tables.
    """

    query_document: Table | None = None
    document: Table | None = None
    query: Table | None = None
    impression: tuple[str, ...] = ()
    options: FeatureOptions = FeatureOptions()
    recipe: FeatureRecipe | None = None

    def __post_init__(self) -> None:
        tables = (self.query_document, self.document, self.query)
        if all(table is None for table in tables) and not self.impression:
            raise InputError("expected a table of features, or columns of the log that are features, found neither")

    @property
    def needs_shown(self) -> bool:
        """Whether candidates or features come from the log."""
        return self.query_document is None or bool(self.impression)

    @property
    def is_one_table(self) -> bool:
        """Whether there is nothing to join."""
        return self.query_document is not None and self.document is None and self.query is None and not self.impression

    def with_ids(self, columns: Mapping[str, str], one_query: bool) -> Self:
        """The same with ids as in a log; see `FeatureOptions`."""
        return replace(self, options=replace(self.options, columns=columns, one_query=one_query))


def read_feature_tables(
    tables: FeatureTables, shown: pl.DataFrame | None = None, stages: Stages = no_stages
) -> Candidates:
    """Join the tables and encode their columns.

    Args:
        tables: The tables. The one by query and document is no LETOR file.
        shown: The documents that a log shows, see `named_variants`; None = all of them are in the table by query and
            document.
        stages: Receives the rows of each table that were read so far, then the columns that became numbers.
    """
    if tables.is_one_table:
        return read_feature_table(tables.query_document, tables.options, tables.recipe, stages)
    if tables.query_document is None and shown is None:
        raise InputError("expected a table with query_id and doc_id that says which documents to rank for a query")
    parts = dict(_raw_tables(tables, stages))
    given = [table for table in (tables.query_document, tables.document, tables.query) if table is not None]
    warn_of_unknown_drops(given, tables.options)
    if problems := list(_collisions({**parts, "the log": pl.DataFrame() if shown is None else shown})):
        raise InputError(problems)
    rows = _candidate_rows(parts.pop("the features", None), shown)
    for name, part in parts.items():
        rows = _join(rows, part, name, keep_all=tables.query_document is not None)
    if not len(rows):
        raise InputError("no document of the log has features in all tables; compare their query_id and doc_id")
    pairs = rows.select(IDS)
    candidates = encoded(
        rows.drop(VARIANT, strict=False),
        tables.options,
        tables.recipe,
        # What is the same for all variants of a document describes the document.
        ids=IDS if shown is None else ("query_id", LOGGED_ID, "doc_id"),
        row_name=lambda row: "document '{1}' of query '{0}'".format(*pairs.row(row)),
        stages=stages,
    )
    assert candidates.recipe is not None
    return replace(candidates, recipe=replace(candidates.recipe, impression=tables.impression))


def named_variants(shown: pl.DataFrame) -> pl.DataFrame:
    """What a log shows, sorted, with an id for each variant of a document: d#5f0c…, by a hash of its features.

    The same features give the same id in every log, so that logs can be merged.

    Args:
        shown: Distinct rows: query_id, doc_id, features and `VARIANT`.

    Returns:
        The same rows with `LOGGED_ID`, the id in the log. Rows of one id have equal features, such as 80 and 80.0 in
        text. Without features, ids are as they are.
    """
    features = [name for name in shown.columns if name not in (*IDS, VARIANT)]
    rows = shown.with_columns(pl.col("doc_id").alias(LOGGED_ID))
    if features:
        texts = pl.DataFrame([_canonical(shown[name]) for name in features])
        rows = rows.with_columns(pl.format("{}#{}", "doc_id", _hashes(texts)).alias("doc_id"))
    return rows.sort("query_id", LOGGED_ID, "doc_id", VARIANT)


def _canonical(column: pl.Series) -> pl.Series:
    """A column as text, the same for the same values of another type; null = missing."""
    if column.dtype == pl.String:
        numbers = number_values(column)
        if not len(not_understood(column, numbers, words=True)):
            return numbers.cast(pl.String)
        return known_text(column)
    return number_values(column).cast(pl.String) if column.dtype.is_numeric() else column.cast(pl.String, strict=False)


def _hashes(texts: pl.DataFrame) -> pl.Series:
    """A hash of each row, the same in every process."""
    distinct = texts.unique()
    rows = (json.dumps(row).encode() for row in distinct.iter_rows())
    hashed = distinct.with_columns(
        pl.Series("(hash)", [blake2b(row, digest_size=HASH_BYTES).hexdigest() for row in rows])
    )
    on = texts.columns
    return texts.join(hashed, on=on, how="left", nulls_equal=True, maintain_order="left")["(hash)"]


def _raw_tables(tables: FeatureTables, stages: Stages) -> Iterator[tuple[str, pl.DataFrame]]:
    given: list[tuple[str, Table | None, Sequence[str]]] = [
        ("the features", tables.query_document, IDS),
        ("the document features", tables.document, ("doc_id",)),
        ("the query features", tables.query, ("query_id",)),
    ]
    for name, table, ids in given:
        if table is None:
            continue
        if is_path(table) and not is_table(Path(table)):
            raise InputError(f"{table}: expected a table, not LETOR, to join with others")
        yield name, read_raw_features(table, ids, tables.options, name, stages)


def _collisions(parts: dict[str, pl.DataFrame]) -> Iterator[str]:
    """Columns that two tables have."""
    times = Counter(name for part in parts.values() for name in part.columns if name not in (*IDS, LOGGED_ID))
    for name in (name for name, number in times.items() if number > 1):
        having = " and ".join(place for place, part in parts.items() if name in part.columns)
        yield f"column '{name}' is in {having}; rename it in one of them"


def _candidate_rows(by_pair: pl.DataFrame | None, shown: pl.DataFrame | None) -> pl.DataFrame:
    """The candidates, with the features of the pair of query and document and of the impression."""
    if shown is None:
        assert by_pair is not None
        return by_pair
    shown = shown.unique(IDS, keep="first", maintain_order=True)
    if by_pair is None:
        return shown
    by_pair = by_pair.rename({"doc_id": LOGGED_ID})
    rows = by_pair.join(shown, on=["query_id", LOGGED_ID], how="left", maintain_order="left")
    return rows.with_columns(pl.coalesce("doc_id", LOGGED_ID).alias("doc_id"))


def _join(rows: pl.DataFrame, part: pl.DataFrame, name: str, keep_all: bool) -> pl.DataFrame:
    """Add the columns of a table to the candidates.

    Args:
        rows: The candidates.
        part: The table to add.
        name: What to call it.
        keep_all: Whether candidates without a match stay, with missing values.
    """
    if LOGGED_ID in rows.columns and "doc_id" in part.columns:
        part = part.rename({"doc_id": LOGGED_ID})
    keys = [key for key in (*IDS, LOGGED_ID) if key in part.columns]
    if keep_all and (lost := len(rows.join(part, on=keys, how="anti"))):
        message = f"{lost:,} of {len(rows):,} candidates are not in {name}; the values of its columns are missing"
        warnings.warn(message, InputWarning, stacklevel=3)
    return rows.join(part, on=keys, how="left" if keep_all else "inner", maintain_order="left")
