"""The values of a column of a table: as numbers, truth values, days or the text of categories; null = missing."""

from hashlib import blake2b

import polars as pl

# What stands for a missing number in text.
MISSING_WORDS = ("na", "n/a", "#n/a", "nan", "null", "\\n", "none", "-", "?")
MICROSECONDS_PER_DAY = 86_400 * 10**6
# A date, perhaps with a time and an offset from UTC, as in ISO 8601.
DATE = r"^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}):(\d{2})(?::(\d{2}(?:\.\d+)?))?\s?(?:Z|UTC|([+-])(\d{2}):?(\d{2}))?)?$"


def is_text(dtype: pl.DataType) -> bool:
    """Whether a column of this type holds text, also as categories."""
    return isinstance(dtype, pl.String | pl.Categorical | pl.Enum)


def not_understood(column: pl.Series, values: pl.Series, words: bool = False) -> pl.Series:
    """The rows in which there is text, but no value was read from it.

    Args:
        column: Text.
        values: What was read from it, null = nothing.
        words: Whether words for missing values are no text.
    """
    rows = (values.is_null() & column.is_not_null()).arg_true()
    return rows.filter(known_text(column.gather(rows), words).is_not_null())


def known_text(column: pl.Series, words: bool = False) -> pl.Series:
    """Text without spaces around it; null where it is empty, or (`words`) a word for a missing value."""
    text = column.cast(pl.String).str.strip_chars()
    missing = text == ""
    if words:
        missing |= text.str.to_lowercase().is_in(MISSING_WORDS)
    return text.set(missing.fill_null(False), None)


def number_values(column: pl.Series) -> pl.Series:
    """A column as Float32; null where it is missing, NaN, or text that is not a number."""
    if is_text(column.dtype):
        text = column.cast(pl.String)
        column = text.cast(pl.Float64, strict=False)
        # With spaces around it; this takes ten times as long.
        again = (column.is_null() & text.is_not_null()).arg_true()
        if len(again):
            numbers = known_text(text.gather(again)).cast(pl.Float64, strict=False)
            column = column.scatter(again, numbers)
    return column.cast(pl.Float32).fill_nan(None)


def truth_values(column: pl.Series) -> pl.Series:
    """A column as Float32, 0 or 1; null where it is missing or neither."""
    if column.dtype == pl.Boolean:
        return column.cast(pl.Float32)
    words = column.cast(pl.String).str.strip_chars().str.to_lowercase()
    return words.replace_strict({"true": 1.0, "1": 1.0, "false": 0.0, "0": 0.0}, default=None, return_dtype=pl.Float32)


def date_values(column: pl.Series) -> pl.Series:
    """A column as Int64, in microseconds since 1970 in UTC; null where it is missing or no date."""
    dtype = column.dtype
    if isinstance(dtype, pl.Date | pl.Datetime):
        # The time stamp of a date with a time zone is in UTC.
        return column.cast(pl.Datetime("us")).dt.timestamp("us") if dtype == pl.Date else column.dt.timestamp("us")
    parts = column.cast(pl.String).str.strip_chars().str.extract_groups(DATE).struct
    day = parts.field("1").str.to_date("%Y-%m-%d", strict=False).cast(pl.Datetime("us")).dt.timestamp("us")
    hours, minutes, seconds, offset_hours, offset_minutes = (
        parts.field(name).cast(pl.Float64).fill_null(0.0) for name in ("2", "3", "4", "6", "7")
    )
    sign = parts.field("5").replace_strict({"-": -1.0}, default=1.0, return_dtype=pl.Float64)
    offset = sign * (offset_hours * 3_600 + offset_minutes * 60)
    of_day = (hours * 3_600 + minutes * 60 + seconds - offset) * 1e6
    return day + of_day.round().cast(pl.Int64)


def category_values(column: pl.Series) -> pl.Series:
    """A column as the names of levels; null where it is missing."""
    if column.dtype == pl.Boolean:
        return column.cast(pl.String)
    if column.dtype.is_float():  # 3.0 is the level 3, as in a table without missing values
        whole = (column == column.floor()) & column.is_finite() & (column.abs() < 2**53)
        text = column.fill_nan(None).cast(pl.String)
        return text.set(whole.fill_null(False), None).fill_null(column.cast(pl.Int64, strict=False).cast(pl.String))
    return known_text(column)


def bucket_of(level: str, buckets: int) -> int:
    """The bucket of a level, the same on every machine and in every process."""
    return int.from_bytes(blake2b(level.encode(), digest_size=8).digest(), "little") % buckets
