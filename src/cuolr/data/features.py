"""Documents and their features, from tables in files or data frames.

A table has the columns query_id and doc_id, and either a column `features` of lists or a column per feature. What
becomes of a column is decided by its kind, see `column_kinds`, or by the recipe of a model.
"""

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from cuolr.data.column_kinds import closest_column, decide_recipe, other_separator
from cuolr.data.encode_features import RowName, apply_recipe, check_columns
from cuolr.data.feature_options import ONE_QUERY, FeatureOptions
from cuolr.data.frames import Table, collect_rows, is_path, to_polars
from cuolr.data.tables import ROW, can_be_ids, id_text, in_calendar, read_errors, scan_table
from cuolr.data.text_sizes import text_array
from cuolr.errors import InputError, InputWarning, problems_in
from cuolr.progress import Stages, no_stages
from cuolr.registry import did_you_mean
from cuolr.types import Bools, Candidates, FeatureRecipe, Floats

IDS = ("query_id", "doc_id")


def read_feature_table(
    table: Table,
    options: FeatureOptions = FeatureOptions(),
    recipe: FeatureRecipe | None = None,
    stages: Stages = no_stages,
) -> Candidates:
    """The candidates of each query, queries in the order of their first row; rows need not be sorted by query.

    Args:
        table: The path of a table (see `scan_table`), or a data frame.
        options: What is a feature, and what to leave out.
        recipe: How columns become numbers, as a model keeps it; None = it is decided by the table.
        stages: Receives the rows that were read so far, then the columns that became numbers.
    """
    rows = read_raw_features(table, IDS, options, stages=stages)
    warn_of_unknown_drops([table], options)
    with problems_in(place_of(table)):
        if not len(rows):
            raise InputError("expected a row for each document, found none")
        if _has_lists(rows):
            return as_candidates(rows, _numbers_of_lists(rows), None)
        return encoded(rows, options, recipe, stages=stages)


def place_of(table: Table, name: str = "the features") -> str:
    """What messages call a table."""
    return str(table) if is_path(table) else name


def read_raw_features(
    table: Table,
    ids: Sequence[str],
    options: FeatureOptions,
    name: str = "the features",
    stages: Stages = no_stages,
) -> pl.DataFrame:
    """The columns of a table as they are, but for those to leave out, with its ids as text; each id or pair once.

    Args:
        table: The path of a table, or a data frame.
        ids: The columns that say what a row describes.
        options: How its ids are called, and what to leave out.
        name: What messages call a data frame.
        stages: Receives the rows that were read so far.
    """
    if is_path(table):
        path = Path(table)
        # All columns of CSV as text: polars would judge their types by the first rows.
        own_names = [options.columns.get(column, column) for column in IDS]
        scanned = scan_table(path, [*IDS, *own_names], all_text=True, stages=stages)
        with read_errors(path):
            unread = [name for name in options.drop_columns if name not in ids]
            rows = collect_rows(scanned.drop(ROW, *unread, strict=False), path, stages)
    else:
        rows = to_polars(table, name)
    with problems_in(place_of(table, name)):
        return _with_ids(rows, ids, options)


def warn_of_unknown_drops(tables: Sequence[Table], options: FeatureOptions) -> None:
    """Warn of columns to leave out that none of the tables has."""
    if not options.drop_columns:
        return
    found: list[str] = []
    for table in tables:
        found += scan_table(Path(table)).collect_schema().names() if is_path(table) else to_polars(table, "").columns
    for name in options.drop_columns:
        if name not in found:
            message = f"column '{name}' was to be left out, but no table of features has it{did_you_mean(name, found)}"
            warnings.warn(message, InputWarning, stacklevel=2)


def encoded(
    table: pl.DataFrame,
    options: FeatureOptions,
    recipe: FeatureRecipe | None,
    ids: Sequence[str] = IDS,
    row_name: RowName | None = None,
    stages: Stages = no_stages,
) -> Candidates:
    """Candidates from a table with a column per feature.

    Args:
        table: A row per document, with its ids as text.
        options: What is a feature, and what to leave out.
        recipe: The recipe of a model; None = it is decided by the table.
        ids: Columns that are ids of queries and documents.
        row_name: How messages call a row; None = by its number.
        stages: Receives the columns that became numbers.
    """
    if recipe is None:
        recipe = decide_recipe(table, ids, options, stages)
    else:
        check_columns(recipe, [name for name in table.columns if name not in ids], options.drop_columns)
    return as_candidates(table, apply_recipe(recipe, table, row_name, stages), recipe)


def as_candidates(table: pl.DataFrame, features: Floats, recipe: FeatureRecipe | None) -> Candidates:
    """The documents of a query in consecutive rows, in their order in the table."""
    query_ids, document_ids = (table[name] for name in IDS)
    queries = query_ids.unique(maintain_order=True)
    query = query_ids.replace_strict(queries, pl.int_range(len(queries), eager=True)).to_numpy()
    order = np.argsort(query, kind="stable")
    return Candidates(
        features=features if (order[1:] > order[:-1]).all() else features[order],
        offsets=np.concatenate([[0], np.cumsum(np.bincount(query))]),
        query_ids=text_array(queries),
        document_ids=text_array(document_ids)[order],
        feature_names=None if recipe is None else np.array(recipe.feature_names, np.str_),
        recipe=recipe,
    )


def _with_ids(table: pl.DataFrame, ids: Sequence[str], options: FeatureOptions) -> pl.DataFrame:
    """The table with our names of its ids, which are text."""
    own_names = {own: name for name, own in options.columns.items() if name in ids and name not in table.columns}
    table = table.rename({own: name for own, name in own_names.items() if own in table.columns})
    added = ["query_id"] if options.one_query and "query_id" in ids else []
    if problems := list(_id_type_problems(table.schema, [name for name in ids if name not in added])):
        raise InputError(problems)
    table = table.with_columns(pl.lit(ONE_QUERY).alias(name) for name in added)
    table = table.drop([name for name in options.drop_columns if name not in ids], strict=False)
    table = table.with_columns(id_text(name, table.schema[name]) for name in ids)
    if problems := [*_id_problems(table, ids), *_time_problems(table)]:
        raise InputError(problems)
    return table


def _id_type_problems(schema: pl.Schema, ids: Sequence[str]) -> Iterator[str]:
    if problem := other_separator(schema.names()):
        yield problem
        return
    for name in ids:
        if name not in schema:
            yield f"column '{name}' is missing{_hint(name, ids, schema.names())}; found: {', '.join(schema)}"
        elif not can_be_ids(schema[name]):
            yield f"column '{name}': expected text or whole numbers, found {schema[name]}"


def _hint(name: str, ids: Sequence[str], found: Sequence[str]) -> str:
    """What to do about a missing column of ids."""
    if guess := closest_column(name, found):
        return f" (did you mean columns={{'{name}': '{guess}'}}?)"
    if name == "query_id" and tuple(ids) == IDS and "doc_id" in found:
        return ", so these are features of documents alone: give them as FeatureTables(document=…)"
    return f"; if it is called otherwise, say columns={{'{name}': 'NAME'}}"


def _id_problems(table: pl.DataFrame, ids: Sequence[str]) -> Iterator[str]:
    for name in ids:
        missing = np.flatnonzero(table[name].is_null())
        if len(missing):
            yield f"column '{name}': expected a value, found {len(missing)} nulls, the first in row {missing[0] + 1}"
        # NumPy drops it at the end of a string, which could merge two documents.
        with_nul = np.flatnonzero(table[name].str.contains("\0", literal=True).fill_null(False))
        if len(with_nul):
            yield f"column '{name}': expected no character NUL, found it in row {with_nul[0] + 1}"
    repeated = table.select(ids).drop_nulls().filter(pl.struct(ids).is_duplicated())
    if len(repeated):
        if len(ids) > 1:
            query_id, document_id = repeated.row(0)
            yield (
                f"expected each document of a query once, found '{document_id}' of query '{query_id}' again; features "
                "that change from impression to impression belong to the log"
            )
        else:
            yield f"expected each {ids[0]} once, found '{repeated.item(0, 0)}' again"


def _time_problems(table: pl.DataFrame) -> Iterator[str]:
    """Times that are none in a calendar: neither polars nor Python can convert them."""
    for column in table.select(pl.selectors.date() | pl.selectors.datetime()):
        if not table.select(in_calendar(column.name, column.dtype).fill_null(True).all()).item():
            yield f"column '{column.name}': expected times in the years 1 to 9999"


def _has_lists(table: pl.DataFrame) -> bool:
    """Whether the only feature column has lists of numbers."""
    others = [name for name in table.columns if name not in IDS]
    dtype = table.schema.get("features")
    return others == ["features"] and isinstance(dtype, pl.List | pl.Array) and dtype.inner.is_numeric()


def _numbers_of_lists(table: pl.DataFrame) -> Floats:
    """[n_documents, F] the lists, which have one length; NaN where a number is missing."""
    lists = table["features"]
    missing = np.flatnonzero(lists.is_null())
    if len(missing):
        raise InputError(
            f"column 'features': expected a list, found {len(missing)} nulls, the first in row {missing[0] + 1}"
        )
    if isinstance(lists.dtype, pl.Array):
        lists = lists.cast(pl.List(lists.dtype.inner))
    lengths = lists.list.len().to_numpy()
    width = int(lengths.max())
    if not width:
        raise InputError("column 'features': expected at least one number in each list, found empty lists only")
    _refuse_lists(width, "a list of another length", lengths < width)  # before a matrix as wide as the longest is made
    features = lists.explode().cast(pl.Float32).to_numpy().reshape(len(table), width)
    _refuse_lists(width, "an infinite number", np.isinf(features).any(axis=1))
    return features


def _refuse_lists(width: int, found: str, bad: Bools) -> None:
    if bad.any():
        raise InputError(
            f"column 'features': expected {width} finite numbers, found {found} in {bad.sum()} rows, the first in row "
            f"{bad.argmax() + 1}"
        )
