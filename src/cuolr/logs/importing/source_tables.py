"""What importers of public click data share: checked columns, lines of text, numbers of lists, and features."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import polars as pl

from cuolr.data.compressed_files import check_expansion
from cuolr.data.features import read_feature_table
from cuolr.data.frames import count_rows, followed
from cuolr.data.tables import NO_SEPARATOR, read_errors
from cuolr.errors import InputError
from cuolr.files import require_file, size_of
from cuolr.logs.importing.log_rows import ROW_BITS
from cuolr.progress import Progress, Share, in_shares, share_of
from cuolr.types import Candidates

# Columns that identify a document of a query.
DOCUMENT = ("query_id", "doc_id")


def check_columns(file: Path, found: Iterable[str], needed: Iterable[str], what: str) -> None:
    """Raise if a file lacks columns.

    Args:
        file: The file.
        found: Its columns.
        needed: Those that it must have.
        what: What the file should be, for the message.
    """
    found = list(found)
    missing = [name for name in needed if name not in found]
    if missing:
        shown = ", ".join(found[:12]) + (f" and {len(found) - 12} more" if len(found) > 12 else "")
        raise InputError(f"{file}: expected {what}; columns missing: {', '.join(missing)}; found: {shown or 'none'}")


def share_of_bytes(files: Sequence[Path], progress: Progress) -> Share:
    """Progress over all files that takes the share of the work, where `progress` takes bytes."""
    return in_shares(progress, sum(map(size_of, files)))


def in_turn(files: Sequence[Path], progress: Share) -> Iterator[tuple[int, Path, Share]]:
    """Each file with its number and its progress; `progress` takes the share of all bytes."""
    total = max(sum(map(size_of, files)), 1)
    for number, file in enumerate(files):
        yield number, file, share_of(progress, size_of(file) / total)


def read_rows(file: Path, rows: pl.LazyFrame, progress: Share) -> pl.DataFrame:
    """All rows of a file, or what is made of them row by row.

    Args:
        file: The file.
        rows: What to read.
        progress: Called with the share of the rows that were read since the last call.
    """
    with read_errors(file):
        total = count_rows(rows)
        if not total:
            progress(1)
        return followed(rows, lambda number: progress(number / total)).collect(engine="streaming")


def list_numbers(file_number: int) -> pl.Expr:
    """The number of each row of a file, which no row of another file has: for files with a list per row."""
    return pl.int_range(pl.len(), dtype=pl.Int64) + (file_number << ROW_BITS)


def read_fields(file: Path, names: Sequence[str], progress: Share) -> pl.DataFrame:
    """The fields of each line of a text file without a header, separated by tabs; null where a line has fewer."""
    require_file(file)
    with read_errors(file):
        check_expansion(file)
    lines = pl.scan_csv(
        file, has_header=False, separator=NO_SEPARATOR, quote_char=None, schema={"line": pl.String}, glob=False
    )
    fields = pl.col("line").str.split_exact("\t", len(names) - 1).struct.rename_fields(names).struct.unnest()
    return read_rows(file, lines.drop_nulls().select(fields).with_columns(pl.all().str.strip_chars()), progress)


def features_of(rows: pl.DataFrame, columns: Iterable[str]) -> Candidates:
    """The documents of each query with their features, those of a document that occurs again from its first row.

    Args:
        rows: A row per shown document: query_id, doc_id and features.
        columns: The columns of features.
    """
    known = rows.filter(pl.all_horizontal(pl.col(DOCUMENT).is_not_null()))
    return read_feature_table(
        known.unique(DOCUMENT, keep="first", maintain_order=True).select(*DOCUMENT, *columns).sort(DOCUMENT)
    )
