"""Tables in files: Parquet, CSV or JSON lines, read lazily."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from cuolr.errors import InputError

# The number of a row, from 1; a name that no column of a user's table has.
ROW = "(row)"


def scan_table(path: Path, text_columns: Iterable[str] = ()) -> pl.LazyFrame:
    """A table, not yet read, with the number of each row in the column `ROW`.

    Args:
        path: Its name says what it is: `.parquet`, `.csv` or `.csv.gz`, `.tsv`, `.jsonl` or `.ndjson`.
        text_columns: Where text and JSON are to be taken as they stand: a guess of numbers would turn the id 007 to 7.
    """
    if not path.is_file():
        raise InputError(f"{path}: expected a file, found {'a folder' if path.exists() else 'nothing'}")
    as_text = {name: pl.String() for name in text_columns}
    name = path.name.lower()
    if name.endswith((".parquet", ".pq")):
        return pl.scan_parquet(path, row_index_name=ROW, row_index_offset=1)
    if name.endswith((".csv", ".csv.gz", ".tsv", ".tsv.gz")):
        separator = "\t" if ".tsv" in name else ","
        return pl.scan_csv(
            path,
            separator=separator,
            schema_overrides=as_text,
            try_parse_dates=True,
            row_index_name=ROW,
            row_index_offset=1,
        )
    if name.endswith((".jsonl", ".ndjson")):
        with read_errors(path):
            present = pl.scan_ndjson(path, infer_schema_length=None).collect_schema()
        overrides = {column: dtype for column, dtype in as_text.items() if column in present}
        return pl.scan_ndjson(
            path, schema_overrides=overrides, infer_schema_length=None, row_index_name=ROW, row_index_offset=1
        )
    raise InputError(f"{path}: expected a table whose name ends in .parquet, .csv, .tsv, .jsonl or .ndjson")


@contextmanager
def read_errors(path: Path) -> Iterator[None]:
    """Damage that polars meets becomes one line."""
    try:
        yield
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError(f"{path}: cannot be read: {str(error).splitlines()[0]}") from None
