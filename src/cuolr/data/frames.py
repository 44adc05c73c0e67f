"""Data frames of polars, pandas and other libraries that export Arrow, and lazy tables, read with progress."""

from collections import Counter
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl

from cuolr.errors import InputError
from cuolr.progress import Progress, Stages

# Values of a table are at most so many times the bytes of its file, beyond 16 million: each takes memory, also if it
# is missing or takes no bytes in the file.
MAX_VALUES_PER_BYTE, FREE_VALUES = 100, 1 << 24

# A file or a data frame; pandas is not a dependency, so its type cannot be named.
Table: TypeAlias = Path | str | Any


def is_path(table: Table) -> bool:
    """Whether a table is to be read from a file."""
    return isinstance(table, str | Path)


def to_polars(frame: Any, name: str) -> pl.DataFrame:
    """Convert a data frame to polars.

    Args:
        frame: A data frame of polars or pandas, or any object with `__arrow_c_stream__`, such as a pyarrow table.
        name: Its name in error messages.
    """
    if isinstance(frame, pl.LazyFrame):
        return frame.collect()
    if isinstance(frame, pl.DataFrame):
        return frame
    if type(frame).__module__.startswith("pandas"):
        return _from_pandas(frame, name)
    if hasattr(frame, "__arrow_c_stream__"):
        return pl.DataFrame(frame)
    found = type(frame).__name__
    raise InputError(f"{name}: expected a path, or a DataFrame of polars or pandas, found an object of type {found}")


def _from_pandas(frame: Any, name: str) -> pl.DataFrame:
    """A data frame of pandas; levels of its index that have a name are columns, as in the files that pandas writes."""
    levels = [level for level in frame.index.names if level is not None and level not in frame.columns]
    frame = frame.reset_index(level=levels) if levels else frame
    if repeated := [str(column) for column, times in Counter(map(str, frame.columns)).items() if times > 1]:
        raise InputError([f"{name}: column '{column}' occurs twice; keep one" for column in repeated])
    try:
        return pl.from_pandas(frame)
    except ImportError:  # polars needs pyarrow for all but plain numbers; pandas does not depend on it
        return pl.DataFrame([_from_pandas_column(frame[column], name) for column in frame.columns])
    except (TypeError, pl.exceptions.PolarsError) as error:
        raise InputError(f"{name}: expected columns of one type each: {_first_line(error)}") from None


def _from_pandas_column(column: Any, name: str) -> pl.Series:
    values = column.to_numpy()
    if values.dtype.kind in "iufbM":
        # Polars knows no times in seconds.
        values = values.astype("datetime64[us]") if values.dtype.kind == "M" else values
        return pl.Series(str(column.name), values, nan_to_null=True)
    pairs = zip(column.tolist(), column.isna().tolist(), strict=True)
    try:
        return pl.Series(str(column.name), [None if missing else value for value, missing in pairs])
    except (TypeError, pl.exceptions.PolarsError) as error:
        raise InputError(f"{name}: column '{column.name}': expected values of one type: {_first_line(error)}") from None


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def collect_rows(rows: pl.LazyFrame, path: Path, stages: Stages) -> pl.DataFrame:
    """All rows; raises `InputError` if they are far more than the file can hold, such as lines with nothing in them.

    Args:
        rows: The table.
        path: Its file.
        stages: Receives the number of rows read so far.
    """
    number, width, size = count_rows(rows), len(rows.collect_schema()), path.stat().st_size
    if number * width > max(FREE_VALUES, MAX_VALUES_PER_BYTE * size):
        raise InputError(
            f"{path}: refused, because {number:,} rows of {width:,} columns are in {size:,} bytes; if this is right, "
            "write it as CSV without compression"
        )
    return followed(rows, stages(f"reading {path.name}", number)).collect(engine="streaming")


def count_rows(rows: pl.LazyFrame) -> int:
    """The number of rows; to count them takes a small part of the time to read them."""
    return int(rows.select(pl.len()).collect(engine="streaming").item())


def followed(rows: pl.LazyFrame, progress: Progress) -> pl.LazyFrame:
    """The same rows; progress is called with the number of those that passed since the last call, by any thread."""

    def pass_on(part: pl.DataFrame) -> pl.DataFrame:
        progress(len(part))
        return part

    return rows.map_batches(pass_on, schema=rows.collect_schema(), projection_pushdown=False, streamable=True)
