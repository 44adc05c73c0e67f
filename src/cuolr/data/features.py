"""Documents and their features, from Parquet or a data frame.

The table has the columns query_id and doc_id, and either a column `features` of lists or a column per feature.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from cuolr.data.frames import Table, is_path, to_polars
from cuolr.data.tables import can_be_ids, read_errors
from cuolr.errors import InputError, problems_in
from cuolr.files import require_file
from cuolr.registry import did_you_mean
from cuolr.types import Candidates, Floats, Strings

IDS = ("query_id", "doc_id")
# Names of features that would leak labels to learners.
LABEL_WORD = re.compile(r"(?<![a-z])(relevan[a-z]*|labels?|grades?|judg[a-z]*|ratings?|targets?)(?![a-z])")
LABEL_NAME = re.compile(r"y|rel|qrels?|clicks?|clicked")


def read_feature_table(table: Table) -> Candidates:
    """The candidates of each query, queries in the order of their first row; rows need not be sorted by query.

    Args:
        table: The path of a Parquet file, or a data frame.
    """
    if not is_path(table):
        rows = to_polars(table, "the features")
        with problems_in("the features"):
            return _candidates(rows)
    path = Path(table)
    require_file(path)
    with read_errors(path):
        rows = pl.read_parquet(path, glob=False)
    with problems_in(path):
        return _candidates(rows)


def _candidates(table: pl.DataFrame) -> Candidates:
    if problems := list(_column_problems(table)) or list(_list_problems(table)):
        raise InputError(problems)
    table = table.with_columns(pl.col(IDS).cast(pl.String))
    features = _features(table)
    if problems := list(_value_problems(table, features)):
        raise InputError(problems)
    query_ids, document_ids = (table[name] for name in IDS)
    queries = query_ids.unique(maintain_order=True)
    query = query_ids.replace_strict(queries, pl.int_range(len(queries), eager=True)).to_numpy()
    order = np.argsort(query, kind="stable")
    return Candidates(
        features=features if (order[1:] > order[:-1]).all() else features[order],
        offsets=np.concatenate([[0], np.cumsum(np.bincount(query))]),
        query_ids=queries.to_numpy().astype(np.str_),
        document_ids=document_ids.to_numpy().astype(np.str_)[order],
        feature_names=_feature_names(table),
    )


def _column_problems(table: pl.DataFrame) -> Iterator[str]:
    schema = table.schema
    for name in IDS:
        if name not in schema:
            guess = did_you_mean(name, schema)
            yield f"column '{name}' is missing{guess}; rename your column; found: {', '.join(schema)}"
    for name in IDS:
        if name in schema and not can_be_ids(schema[name]):
            yield f"column '{name}': expected text or whole numbers, found {schema[name]}"
    others = [name for name in schema if name not in IDS]
    if not others:
        yield "expected a column 'features' with lists, or a column per feature, found none"
    for name in others:
        if looks_like_label(name):
            yield f"column '{name}' looks like a relevance label, which a ranker must not see; remove or rename it"
        elif isinstance(schema[name], pl.List | pl.Array):
            if name != "features" or len(others) > 1 or not schema[name].inner.is_numeric():  # type: ignore[attr-defined]
                yield f"column '{name}': expected one list of numbers, named 'features', found {schema[name]}"
        elif not (schema[name].is_numeric() or schema[name] == pl.Boolean):
            yield f"column '{name}': expected numbers, found {schema[name]}; remove it if it is not a feature"
    if not len(table):
        yield "expected a row for each document, found none"


def looks_like_label(name: str) -> bool:
    """Whether the name contains a word for relevance, or is a short name for it."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    return LABEL_WORD.search(words) is not None or LABEL_NAME.fullmatch(words) is not None


def _list_problems(table: pl.DataFrame) -> Iterator[str]:
    """Problems with lists: nulls, or only empty lists."""
    if not isinstance(table.schema.get("features"), pl.List | pl.Array):
        return
    missing = np.flatnonzero(table["features"].is_null())
    if len(missing):
        yield f"column 'features': expected a list, found {len(missing)} nulls, the first in row {missing[0] + 1}"
    elif not table["features"].explode(empty_as_null=False).len():
        yield "column 'features': expected at least one number in each list, found empty lists only"


def _features(table: pl.DataFrame) -> Floats:
    """[n_documents, F]; NaN where a value is missing, including at the end of lists that are too short."""
    columns = table.drop(IDS)
    if isinstance(columns.dtypes[0], pl.Array):
        columns = columns.cast(pl.List(columns.dtypes[0].inner))
    if isinstance(columns.dtypes[0], pl.List):
        width = int(columns["features"].list.len().to_numpy().max())
        columns = columns.select(pl.col("features").list.get(j, null_on_oob=True).alias(str(j)) for j in range(width))
    features = np.empty(columns.shape, np.float32)
    for j, column in enumerate(columns):
        features[:, j] = column.cast(pl.Float32).to_numpy()
    return features


def _feature_names(table: pl.DataFrame) -> Strings | None:
    """The names of the feature columns, in order; None for lists."""
    names = [name for name in table.columns if name not in IDS]
    return None if isinstance(table.schema[names[0]], pl.List | pl.Array) else np.array(names, np.str_)


def _value_problems(table: pl.DataFrame, features: Floats) -> Iterator[str]:
    for name in IDS:
        missing = np.flatnonzero(table[name].is_null())
        if len(missing):
            yield f"column '{name}': expected a value, found {len(missing)} nulls, the first in row {missing[0] + 1}"
        # NumPy drops it at the end of a string, which could merge two documents.
        with_nul = np.flatnonzero(table[name].str.contains("\0", literal=True).fill_null(False))
        if len(with_nul):
            yield f"column '{name}': expected no character NUL, found it in row {with_nul[0] + 1}"
    repeated = table.select(IDS).drop_nulls().filter(pl.struct(IDS).is_duplicated())
    if len(repeated):
        query_id, document_id = repeated.row(0)
        yield f"expected each document of a query once, found '{document_id}' of query '{query_id}' again"
    bad = np.flatnonzero(~np.isfinite(features).all(axis=1))
    if len(bad):
        found = "a missing value, NaN, an infinite number or a list of another length"
        yield f"features: expected finite numbers, found {found} in {len(bad)} rows, the first in row {bad[0] + 1}"
