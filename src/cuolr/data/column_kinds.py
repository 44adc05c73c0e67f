"""What a column of a table is: a known one by another name; a number, boolean, category or date; or none, and why."""

import difflib
import re
from collections.abc import Sequence
from datetime import datetime, timedelta

import polars as pl

from cuolr.data.column_values import (
    category_values,
    date_values,
    is_text,
    known_text,
    not_understood,
    number_values,
    truth_values,
)
from cuolr.data.feature_options import FeatureOptions
from cuolr.errors import InputError
from cuolr.progress import Stages, no_stages
from cuolr.registry import did_you_mean
from cuolr.types import FeatureColumn, FeatureRecipe

# Other separators of a CSV file, as messages call them.
SEPARATORS = {"\t": "tabs", ";": "';'", "|": "'|'"}
# What columns are often called elsewhere, where the names are not alike.
OTHER_NAMES = {
    "query_id": ("query", "q", "search_query", "user_query", "search_term", "search", "term", "keyword", "keywords"),
    "session_id": ("search_id", "srch_id", "request_id", "request", "impression_id", "page_view_id"),
    "position": ("rank", "pos", "ordinal", "slot"),
    "doc_id": (
        *("document_id", "product_id", "item_id", "prop_id", "object_id", "sku", "url"),
        *("document", "doc", "product", "item"),
    ),
    "click": ("clicked", "clicks", "click_bool", "is_click"),
    "timestamp": (
        *("ts", "time", "datetime", "date", "event_time", "event_date", "unixtime"),
        *("created_at", "shown_at", "logged_at", "served_at", "day"),
    ),
}


def closest_column(name: str, found: Sequence[str]) -> str:
    """The column that a missing one is most likely called by, "" = none."""
    spelled = {re.sub(r"\W", "_", column.lower()): column for column in reversed(found)}
    close = difflib.get_close_matches(name, spelled, n=1)
    return next((spelled[other] for other in (*close, *OTHER_NAMES.get(name, ())) if other in spelled), "")


def other_separator(columns: Sequence[str]) -> str:
    """The problem of a table whose only column holds all of them; "" = none."""
    used = [mark for mark in SEPARATORS if len(columns) == 1 and mark in columns[0]]
    if not used:
        return ""
    return f"expected columns separated by commas, found {SEPARATORS[used[0]]}; save the table with commas"


# Categories of more levels are hashed.
MAX_LEVELS = 20
# Number of buckets of a hashed category.
BUCKETS = 64
# Text with more distinct values than this share of the documents (or queries) it describes names each of them.
MAX_DISTINCT_SHARE = 0.5
EPOCH = datetime(1970, 1, 1)

# Names of features that would leak labels to learners.
LABEL_WORD = re.compile(r"(?<![a-z])(relevan[a-z]*|labels?|grades?|judg[a-z]*|ratings?|targets?)(?![a-z])")
LABEL_NAME = re.compile(r"y|rel|qrels?|clicks?|clicked")

# Whole numbers up to this are exact in float32.
EXACT_IN_FLOAT32 = 2**24
# Up to this share of values that are no numbers, in a column of numbers, are taken for errors; the same for dates. The
# second is for text with more than `MAX_LEVELS` different values, which is seldom a category if half of it are numbers.
MAX_EXCEPTIONS, MAX_EXCEPTIONS_OF_MANY = 0.1, 0.5
# Numbers and dates as people write them: 3,5 or $3.99 or 12 EUR or 50%; 31.12.2026 or 12/31/2026.
OTHER_NUMBER = r"^[^\w\s]{0,2}\s?[-+]?\d[\d.,']*\s?(?:[^\W\d_]{1,3}|[^\w\s]{1,2})?$"
OTHER_DATE = r"^\d{1,4}[./-]\d{1,2}[./-]\d{1,4}$"


class _UnusableError(Exception):
    """Why a column cannot be a feature."""


def looks_like_label(name: str) -> bool:
    """Whether the name contains a word for relevance, or is a short name for it."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    return LABEL_WORD.search(words) is not None or LABEL_NAME.fullmatch(words) is not None


def decide_recipe(
    table: pl.DataFrame,
    ids: Sequence[str],
    options: FeatureOptions = FeatureOptions(),
    stages: Stages = no_stages,
) -> FeatureRecipe:
    """Decide what kind of feature each column is.

    Args:
        table: A row per document.
        ids: Its columns that are not features.
        options: What to leave out, and what is a category.
        stages: Receives the columns whose kind is known.

    Raises:
        InputError: With a line for each column that is not usable.
    """
    columns, problems = [], []
    names = [name for name in table.columns if name not in (*ids, *options.drop_columns)]
    progress = stages("finding kinds of features", len(names))
    for name in names:
        progress(1)
        leave_out = f"leave it out with drop_columns=['{name}']"
        if looks_like_label(name) and name not in options.allow_columns:
            problems.append(
                f"column '{name}' looks like a relevance label, which a ranker must not see; if it is a feature, say "
                f"allow_columns=['{name}'], otherwise {leave_out}"
            )
            continue
        try:
            columns.append(_column(table, name, ids, name in options.category_columns))
        except _UnusableError as reason:
            problems.append(f"column '{name}': {reason}; {leave_out}")
    for option in ("category_columns", "allow_columns"):
        unknown = [name for name in getattr(options, option) if name not in table.columns]
        problems += [
            f"{option}=['{name}']: there is no such column{did_you_mean(name, table.columns)}" for name in unknown
        ]
    if not columns and not problems:
        problems.append("expected a column 'features' with lists, or a column per feature, found none")
    recipe = FeatureRecipe(tuple(columns), tuple(options.drop_columns))
    names = recipe.feature_names
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        problems.append(f"two features would be called '{twice}'; rename one of the columns they come from")
    if problems:
        raise InputError(problems)
    return recipe


def _column(table: pl.DataFrame, name: str, ids: Sequence[str], is_category: bool) -> FeatureColumn:
    column, dtype = table[name], table.schema[name]
    if isinstance(dtype, pl.List | pl.Array) and name == "features":
        raise _UnusableError(f"expected one list of numbers, and no other column, found {dtype}")
    if not (is_text(dtype) or dtype.is_numeric() or isinstance(dtype, pl.Boolean | pl.Date | pl.Datetime | pl.Null)):
        raise _UnusableError(f"{dtype} is neither a number, a boolean, a category nor a date")
    if not _has_value(column):
        raise _UnusableError("it has no value in any row")
    if is_category:
        return _category(table, name, ids)
    if dtype.is_numeric():
        _check_precision(column)
        return FeatureColumn(name)
    if dtype == pl.Boolean:
        return FeatureColumn(name, "boolean")
    if isinstance(dtype, pl.Date | pl.Datetime):
        return _date(column)
    if isinstance(dtype, pl.String):
        numbers = number_values(column)
        if _is_read(column, numbers, words=True) and not _are_codes(column):
            _check_precision(numbers)
            return FeatureColumn(name)
        if _is_read(column, truth_values(column)):
            return FeatureColumn(name, "boolean")
        if _is_read(column, date_values(column)):
            return _date(column)
        for kind, values in (("number", numbers), ("date", date_values(column))):
            _check_few_exceptions(column, values, kind)
        _check_notation(column, numbers)
    return _category(table, name, ids)


def _check_precision(numbers: pl.Series) -> None:
    """Raise if float32 cannot tell most of the numbers apart."""
    if float(numbers.abs().max() or 0) <= EXACT_IN_FLOAT32:  # type: ignore[arg-type]
        return
    before, after = numbers.n_unique(), numbers.cast(pl.Float32).n_unique()
    if 2 * after < before:
        raise _UnusableError(
            f"{before:,} different numbers are only {after:,} in float32; give dates as dates, and codes as categories"
        )


def _check_few_exceptions(column: pl.Series, values: pl.Series, kind: str) -> None:
    """Raise if nearly all values are of a kind and a few are not: these are errors, not levels of a category."""
    bad, total = not_understood(column, values, words=True), len(column) - column.null_count()
    most = MAX_EXCEPTIONS_OF_MANY if column.n_unique() > MAX_LEVELS else MAX_EXCEPTIONS
    if 0 < len(bad) <= most * total:
        raise _UnusableError(
            f"{total - len(bad):,} of {total:,} values are {kind}s, and '{column[bad[0]]}' in row {bad[0] + 1} is not; "
            f"mend it, or say category_columns=['{column.name}']"
        )


def _check_notation(column: pl.Series, numbers: pl.Series) -> None:
    """Raise if nearly all of many different values are numbers or dates in a notation that is not read."""
    text = known_text(column, words=True).drop_nulls()
    if text.n_unique() <= MAX_LEVELS:
        return
    unread = known_text(column.gather(not_understood(column, numbers, words=True)))
    other = unread.filter(unread.str.contains(OTHER_NUMBER) | unread.str.contains(OTHER_DATE))
    if len(other) >= (1 - MAX_EXCEPTIONS) * len(text):
        raise _UnusableError(
            f"values such as '{other[0]}' look like numbers or dates in another notation; write them as 3.5 and "
            f"2026-11-01, or say category_columns=['{column.name}']"
        )


def _has_value(column: pl.Series) -> bool:
    """Whether any value is known."""
    if is_text(column.dtype):
        return bool(column.cast(pl.String).str.contains(r"\S").any())
    known = column.drop_nulls()
    return len(known.drop_nans() if column.dtype.is_float() else known) > 0


def _is_read(column: pl.Series, values: pl.Series, words: bool = False) -> bool:
    """Whether values were read from text wherever there is any, and some were."""
    return values.null_count() < len(values) and not len(not_understood(column, values, words))


def _are_codes(column: pl.Series) -> bool:
    """Whether digits start with a zero, as in postal codes: no number is written so."""
    return bool(column.str.contains(r"^\s*0\d").any())


def _date(column: pl.Series) -> FeatureColumn:
    latest = date_values(column).max()
    assert isinstance(latest, int)
    return FeatureColumn(column.name, "date", latest=(EPOCH + timedelta(microseconds=latest)).isoformat())


def _category(table: pl.DataFrame, name: str, ids: Sequence[str]) -> FeatureColumn:
    values = category_values(table[name])
    levels, missing = values.drop_nulls().unique().sort(), values.null_count() > 0
    if len(levels) <= MAX_LEVELS:
        return FeatureColumn(name, "category", tuple(levels.to_list()), missing_level=missing)
    number, what = _described(table.select(ids).with_columns(values.alias("(value)")), ids)
    if len(levels) > MAX_DISTINCT_SHARE * number:
        raise _UnusableError(
            f"text with {len(levels):,} different values for {number:,} {what} is neither a number nor a category"
        )
    return FeatureColumn(name, "hashed category", buckets=BUCKETS, missing_level=missing)


def _described(table: pl.DataFrame, ids: Sequence[str]) -> tuple[int, str]:
    """How many queries a column describes, if each has one value; or documents, if each of those has; or rows."""
    for name in ids:
        distinct = table[name].n_unique()
        if table.select(name, "(value)").n_unique() == distinct:
            return distinct, "queries" if name == "query_id" else "documents"
    return len(table), "rows"
