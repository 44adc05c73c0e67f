"""Features from up to three tables: of documents, of queries, of documents for a query; and from the log itself."""

import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import polars as pl

from cuolr.data.feature_options import FeatureOptions
from cuolr.data.features import IDS, encoded, read_feature_table, read_raw_features
from cuolr.data.frames import Table, is_path
from cuolr.data.tables import is_table
from cuolr.errors import InputError, InputWarning
from cuolr.types import Candidates, FeatureRecipe

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

    def with_columns(self, columns: Mapping[str, str]) -> Self:
        """The same with other names of id columns."""
        return replace(self, options=replace(self.options, columns=columns))


def read_feature_tables(tables: FeatureTables, shown: pl.DataFrame | None = None) -> Candidates:
    """Join the tables and encode their columns.

    Args:
        tables: The tables. The one by query and document is no LETOR file.
        shown: The documents that a log shows, see `numbered_variants`; None = all of them are in the table by query and
            document.
    """
    if tables.is_one_table:
        return read_feature_table(tables.query_document, tables.options, tables.recipe)
    if tables.query_document is None and shown is None:
        raise InputError("expected a table with query_id and doc_id that says which documents to rank for a query")
    parts = dict(_raw_tables(tables))
    if problems := list(_collisions({**parts, "the log": pl.DataFrame() if shown is None else shown})):
        raise InputError(problems)
    rows = _candidate_rows(parts.pop("the features", None), shown)
    for name, part in parts.items():
        rows = _join(rows, part, name, keep_all=tables.query_document is not None)
    if not len(rows):
        raise InputError("no document of the log has features in all tables; compare their query_id and doc_id")
    ids = rows.select(IDS)
    return encoded(
        rows.drop(LOGGED_ID, VARIANT, strict=False),
        tables.options,
        tables.recipe,
        lambda row: "document '{1}' of query '{0}'".format(*ids.row(row)),
    )


def numbered_variants(shown: pl.DataFrame) -> pl.DataFrame:
    """Distinct rows of what a log shows, sorted; the second variant of document d is d#2, the third d#3.

    Args:
        shown: Columns query_id, doc_id, features and `VARIANT`.

    Returns:
        The same rows with unique ids; `LOGGED_ID` is the id in the log.
    """
    features = [name for name in shown.columns if name not in (*IDS, VARIANT)]
    number = pl.int_range(1, pl.len() + 1).over(IDS)
    unique = pl.when(number == 1).then("doc_id").otherwise(pl.format("{}#{}", "doc_id", number))
    rows = shown.sort(*IDS, *features, VARIANT).with_columns(pl.col("doc_id").alias(LOGGED_ID), doc_id=unique)
    repeated = rows.filter(pl.struct(IDS).is_duplicated())
    if len(repeated):
        raise InputError(
            f"document id '{repeated['doc_id'][0]}' of query '{repeated['query_id'][0]}' is also the name of a variant "
            "of another document; rename it"
        )
    return rows


def _raw_tables(tables: FeatureTables) -> Iterator[tuple[str, pl.DataFrame]]:
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
        yield name, read_raw_features(table, ids, tables.options, name)


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
