"""Numbers from the columns of a feature table, by a recipe."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta

import numpy as np
import polars as pl

from cuolr.data.column_kinds import EPOCH
from cuolr.data.column_values import (
    MICROSECONDS_PER_DAY,
    bucket_of,
    category_values,
    date_values,
    is_text,
    not_understood,
    number_values,
    truth_values,
)
from cuolr.errors import InputError, InputWarning
from cuolr.progress import Stages, no_stages
from cuolr.registry import did_you_mean
from cuolr.types import FeatureColumn, FeatureRecipe, Floats

# Says where a row is, for messages.
RowName = Callable[[int], str]


def check_columns(recipe: FeatureRecipe, found: Sequence[str], drop: Sequence[str] = ()) -> None:
    """Raise if a column of the recipe is missing, or one is new.

    Args:
        recipe: The recipe of a model.
        found: The columns of a table, without the ids.
        drop: Columns that are left out on request.
    """
    known = [column.name for column in recipe.columns]
    problems = [
        f"column '{name}' is missing{did_you_mean(name, found)}; the model was trained with it"
        for name in known
        if name not in found
    ]
    new = [name for name in found if name not in (*known, *recipe.dropped, *drop)]
    problems += [
        f"column '{name}' was not in the training data; leave it out with drop_columns=['{name}']" for name in new
    ]
    if problems:
        raise InputError(problems)


def apply_recipe(
    recipe: FeatureRecipe, table: pl.DataFrame, row_name: RowName | None = None, stages: Stages = no_stages
) -> Floats:
    """[n, F] the numbers of each row; NaN where a number, a boolean or a date is missing.

    Warns of levels that the training data did not have: they are 0 in the columns of all levels.

    Args:
        recipe: What becomes of each column.
        table: Has all columns of the recipe.
        row_name: How messages call a row; None = by its number from 1.
        stages: Receives the columns that became numbers.

    Raises:
        InputError: With a line for each column whose values are not of its kind.
    """
    features = np.zeros((len(table), len(recipe.feature_names)), np.float32)
    problems: list[str] = []
    start = 0
    progress = stages("encoding features", len(recipe.columns))
    for column in recipe.columns:
        progress(1)
        width = len(column.feature_names)
        part = features[:, start : start + width]
        start += width
        if column.kind == "category" or column.kind == "hashed category":
            problems += _fill_levels(column, table[column.name], part)
        else:
            problems += _fill_numbers(column, table[column.name], part[:, 0], row_name or (lambda i: f"row {i + 1}"))
    if problems:
        raise InputError(problems)
    return features


def _fill_numbers(column: FeatureColumn, raw: pl.Series, out: Floats, row_name: RowName) -> Iterator[str]:
    """Write the numbers of a column; yields what is wrong with it."""
    if not _has_type_of(column, raw.dtype):
        yield f"column '{column.name}': expected a {column.kind}, as in training, found {raw.dtype}"
        return
    read = {"number": number_values, "boolean": truth_values, "date": date_values}[column.kind]
    values = read(raw)
    if is_text(raw.dtype):
        wrong = not_understood(raw, values, words=True)
        if len(wrong):
            found = f"'{raw[wrong[0]]}' in {row_name(wrong[0])}"
            yield f"column '{column.name}': expected a {column.kind}, found {found}{_more(len(wrong))}"
    numbers = values.to_numpy()
    if column.kind == "date":
        latest = (datetime.fromisoformat(column.latest) - EPOCH) // timedelta(microseconds=1)
        numbers = ((latest - values) / MICROSECONDS_PER_DAY).to_numpy()
    infinite = np.flatnonzero(np.isinf(numbers))
    if len(infinite):
        found = f"{raw[int(infinite[0])]} in {row_name(int(infinite[0]))}"
        yield f"column '{column.name}': expected finite numbers in float32, found {found}{_more(len(infinite))}"
    out[:] = numbers


def _has_type_of(column: FeatureColumn, dtype: pl.DataType) -> bool:
    """Whether values of this type can be of the column's kind."""
    if is_text(dtype) or dtype == pl.Null:
        return True
    if column.kind == "date":
        return isinstance(dtype, pl.Date | pl.Datetime)
    return dtype.is_numeric() or dtype == pl.Boolean


def _fill_levels(column: FeatureColumn, raw: pl.Series, out: Floats) -> Iterator[str]:
    """Write the 1 of each row's level; yields what is wrong with the column."""
    if raw.dtype.is_nested() or raw.dtype == pl.Binary:
        yield f"column '{column.name}': expected a category, as in training, found {raw.dtype}"
        return
    values = category_values(raw)
    present = values.drop_nulls().unique()
    if column.kind == "hashed category":
        numbers = {level: bucket_of(level, column.buckets) for level in present.to_list()}
    else:
        numbers = {level: number for number, level in enumerate(column.levels)}
        unknown = sorted(set(present.to_list()) - numbers.keys())
        if unknown:
            rows = int(values.is_in(unknown).sum())
            message = (
                f"column '{column.name}': {rows:,} rows have a level that the training data did not have, such as "
            )
            warnings.warn(f"{message}'{unknown[0]}'; they count as none of its levels", InputWarning, stacklevel=2)
    missing_level = out.shape[1] - 1 if column.missing_level else -1
    index = values.replace_strict(numbers, default=-1, return_dtype=pl.Int64).to_numpy().copy()
    index[values.is_null().to_numpy()] = missing_level
    rows_with_level = np.flatnonzero(index >= 0)
    out[rows_with_level, index[rows_with_level]] = 1


def _more(number: int) -> str:
    return f", and {number - 1:,} more" if number > 1 else ""
