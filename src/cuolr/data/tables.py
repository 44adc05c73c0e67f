"""Tables in files: Parquet, Feather, CSV or JSON lines, read lazily."""

import codecs
import csv
import glob
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import polars as pl

from cuolr.data.arrow_structure import check_arrow
from cuolr.data.bad_lines import bad_csv_line, bad_json_line
from cuolr.data.column_kinds import SEPARATORS
from cuolr.data.compressed_files import check_expansion, check_zstandard, count_parquet_rows, open_gzip
from cuolr.data.line_blocks import BLOCK_BYTES, check_width, columns_of_blocks, json_columns
from cuolr.data.text_sizes import check_parquet_texts, check_texts
from cuolr.errors import InputError
from cuolr.files import require_file
from cuolr.progress import Stages, no_stages

# Column of row numbers, from 1; a name that no user's table has.
ROW = "(row)"

PARQUET = (".parquet", ".pq")
FEATHER = (".feather", ".arrow", ".ipc")
ZSTANDARD = ".zst"
COMMAS, TABS = (".csv", ".csv.gz", ".csv.zst"), (".tsv", ".tsv.gz", ".tsv.zst")
JSON_LINES = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".ndjson", ".ndjson.gz", ".ndjson.zst")

# Beyond it, different whole numbers are the same float.
LARGEST_EXACT: dict[pl.DataType, float] = {pl.Float32(): 2.0**24, pl.Float64(): 2.0**53}

# Of the types of times, and the first and the last day of the years 1 to 9999, from 1970 on.
UNITS_PER_DAY = {"day": 1, "ms": 86_400 * 10**3, "us": 86_400 * 10**6, "ns": 86_400 * 10**9}
CALENDAR_DAYS = (-719_162, 2_932_896)

# The header is searched in these first bytes, because a file without line ends may be larger than memory.
HEAD_BYTES = 1 << 20
QUOTED = re.compile(r'"[^"]*"')
# A character that is in no text, to read whole lines.
NO_SEPARATOR = "\x1f"


def scan_table(
    path: Path, text_columns: Iterable[str] = (), all_text: bool = False, stages: Stages = no_stages
) -> pl.LazyFrame:
    """A lazy frame of a table, with the number of each row in the column `ROW`.

    Args:
        path: The suffix gives the format: `.parquet`, `.feather`, `.arrow` or `.ipc`; `.csv`, `.tsv`, `.jsonl` or
            `.ndjson`, compressed if `.gz` or `.zst` follows.
        text_columns: Columns of CSV and JSON to read as text; as a number, the id 007 would become 7.
        all_text: Whether to read all columns of CSV as text.
        stages: Receives the bytes of JSON lines that were read so far, to find their columns.
    """
    require_file(path)
    as_text = {name: pl.String() for name in text_columns}
    if _is(path, PARQUET):
        with read_errors(path):
            count_parquet_rows(path, texts=())
            check_width(path, len(pl.scan_parquet(path, glob=False).collect_schema()))
            check_parquet_texts(path)
        return pl.scan_parquet(path, glob=False, row_index_name=ROW, row_index_offset=1)
    if _is(path, FEATHER):
        check_arrow(path)
        with read_errors(path):
            check_width(path, len(pl.scan_ipc(path, glob=False).collect_schema()))
            check_texts(path, pl.scan_ipc(path, glob=False))
        return pl.scan_ipc(path, glob=False, row_index_name=ROW, row_index_offset=1)
    if _is(path, COMMAS + TABS):
        _check_head(path)
        return pl.scan_csv(
            path,
            separator=_separator(path),
            schema_overrides=as_text,
            infer_schema=not all_text,
            # Polars would take 10/01/2026 for a day in January; texts in ISO 8601 are read where a time is expected.
            try_parse_dates=False,
            glob=False,
            row_index_name=ROW,
            row_index_offset=1,
        )
    if _is(path, JSON_LINES):
        _check_head(path)
        # Polars always treats the name of such a file as a pattern.
        pattern = glob.escape(str(path))
        with read_errors(path):
            present = _json_columns(path, stages)
        schema = {**present, **{column: dtype for column, dtype in as_text.items() if column in present}}
        return pl.scan_ndjson(pattern, schema=schema, row_index_name=ROW, row_index_offset=1)
    raise InputError(
        f"{path}: expected a table whose name ends in .parquet, .csv, .tsv, .jsonl, .ndjson or .feather; text may be "
        "compressed (.gz, .zst)"
    )


def _json_columns(path: Path, stages: Stages) -> pl.Schema:
    compressed = _is(path, (ZSTANDARD,))  # which polars can read, and the standard library cannot
    progress = stages(f"finding the columns of {path.name}", None if compressed else path.stat().st_size)
    return columns_of_blocks(path, _zstandard_blocks(path)) if compressed else json_columns(path, progress)


def is_table(path: Path) -> bool:
    """Whether the name of a file is that of a table that `scan_table` reads."""
    return _is(path, PARQUET + FEATHER + COMMAS + TABS + JSON_LINES)


def can_be_ids(dtype: pl.DataType) -> bool:
    """Whether a column of this type can hold ids: text, also as categories, or whole numbers, also as floats.

    Pandas makes floats of whole numbers if some are missing.
    """
    is_text = isinstance(dtype, pl.String | pl.Categorical | pl.Enum | pl.Null)
    return is_text or dtype.is_integer() or dtype in LARGEST_EXACT


def id_text(name: str, dtype: pl.DataType) -> pl.Expr:
    """Ids as text: floats that are whole numbers as these, and missing if they are too large to be exact."""
    column = pl.col(name)
    if dtype not in LARGEST_EXACT:
        return column.cast(pl.String)
    is_exact, is_whole = column.abs() <= LARGEST_EXACT[dtype], column == column.round()
    return (
        pl.when(is_exact & is_whole)
        .then(column.cast(pl.Int64, strict=False).cast(pl.String))
        .when(is_exact)
        .then(column.cast(pl.String))
    )


def in_calendar(name: str, dtype: pl.DataType) -> pl.Expr:
    """Whether the dates or times of a column are in the years 1 to 9999; polars and Python cannot convert others."""
    days = pl.col(name).to_physical() // UNITS_PER_DAY[getattr(dtype, "time_unit", "day")]
    return days.is_between(*CALENDAR_DAYS)


@contextmanager
def read_errors(place: Path | str) -> Iterator[None]:
    """Turn errors of polars into one line that names the file, and its line if known."""
    try:
        yield
    except pl.exceptions.PanicException:  # polars did not expect such a file; its own note is on stderr
        raise InputError(f"{place}: cannot be read: damaged, or not what its name says") from None
    except pl.exceptions.PolarsError as error:
        bad_line = _bad_line(place) if isinstance(place, Path) else None
        raise InputError(f"{place}: cannot be read: {bad_line or _first_line(error)}") from None
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{place}: cannot be read: {_first_line(error)}") from None


@contextmanager
def write_errors(path: Path) -> Iterator[None]:
    """Turn errors of writing, such as a full disk, into one line that names the file."""
    try:
        yield
    except (pl.exceptions.PolarsError, OSError) as error:
        if getattr(error, "filename", None) is not None:  # it names the file already
            raise
        raise InputError(f"{path}: cannot be written: {_first_line(error)}") from None


def _is(path: Path, endings: tuple[str, ...]) -> bool:
    return path.name.lower().endswith(endings)


def _separator(path: Path) -> str:
    """What separates the columns of a text file, by its name and its first line."""
    if _is(path, (ZSTANDARD,)):
        return _separator_of("".join(_zstandard_header(path, NO_SEPARATOR, quote_char=None)), path)
    with _open(path) as file:
        head = file.read(HEAD_BYTES)
    return _separator_of(_first_row(head).decode(errors="replace"), path)


def _separator_of(line: str, path: Path) -> str:
    if _is(path, TABS):
        return "\t"
    # A header without a comma, but in quotes: spreadsheets write semicolons where the comma is the decimal mark.
    line = QUOTED.sub("", line)
    return next((mark for mark in SEPARATORS if mark in line and "," not in line), ",")


def _first_row(head: bytes) -> bytes:
    return head.lstrip(b"\r\n").partition(b"\n")[0]


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


@contextmanager
def _open(path: Path) -> Iterator[IO[bytes]]:
    """A text file, gzipped or not, as bytes."""
    with path.open("rb") as file:
        compressed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        yield open_gzip(path, file) if compressed else file


def _check_head(path: Path) -> None:
    """Raise for files that polars would misread silently or with an unclear error."""
    is_text = not _is(path, JSON_LINES)
    if _is(path, (ZSTANDARD,)):
        with read_errors(path):
            check_zstandard(path, strict=True)
        if is_text:
            _check_header(path, _zstandard_header(path, _separator(path)))
        return
    with read_errors(path):
        if is_text:  # polars decompresses it at once; of JSON lines, each is read here before
            check_expansion(path)
        with _open(path) as file:
            head = file.read(HEAD_BYTES)
    if not head.strip():
        raise InputError(f"{path}: expected a table, found an empty file")
    line = _first_row(head)
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in line:
        raise InputError(f"{path}: expected text in UTF-8, found UTF-16; save it as UTF-8")
    try:
        # The head may end within a character.
        text, _ = codecs.utf_8_decode(line, "strict", False)
    except UnicodeDecodeError:
        raise InputError(f"{path}: line 1: expected text in UTF-8, found other bytes") from None
    if _is(path, JSON_LINES):
        if head.startswith(codecs.BOM_UTF8):
            raise InputError(f"{path}: expected a JSON object, found a byte order mark; save it as UTF-8 without one")
        return
    try:
        header = next(csv.reader([text.removeprefix("\ufeff")], delimiter=_separator_of(text, path)))
    except csv.Error as error:  # such as line ends of old Macs
        raise InputError(f"{path}: line 1: expected a header, found another form of text ({error})") from None
    _check_header(path, header)


def _check_header(path: Path, header: list[str]) -> None:
    """Refuse repeated columns: polars would rename them."""
    check_width(path, len(header))
    repeated = [name for name, times in Counter(header).items() if times > 1 and name]
    if repeated:
        raise InputError([f"{path}: column '{name}' occurs twice; keep one" for name in repeated])


def _zstandard_header(path: Path, separator: str, quote_char: str | None = '"') -> list[str]:
    """The header of a file that polars can decompress, and the standard library cannot."""
    with read_errors(path):
        head = _zstandard_rows(path, separator, quote_char).head(1).collect()
    return [str(name) for name in head.row(0)] if len(head) else []


def _zstandard_blocks(path: Path) -> Iterator[bytes]:
    """Blocks of whole lines of such a file."""
    lines = _zstandard_rows(path, NO_SEPARATOR, quote_char=None).collect().to_series()
    content = "\n".join(lines.drop_nulls()).encode()
    start = 0
    while start < len(content):
        end = content.find(b"\n", start + BLOCK_BYTES) + 1 or len(content)
        yield content[start:end]
        start = end


def _zstandard_rows(path: Path, separator: str, quote_char: str | None) -> pl.LazyFrame:
    options: dict[str, Any] = {"has_header": False, "infer_schema": False, "truncate_ragged_lines": True}
    return pl.scan_csv(path, separator=separator, quote_char=quote_char, glob=False, **options)


def _bad_line(path: Path) -> str | None:
    """The problem and the line of a malformed text file, which polars does not report; None = not known."""
    if _is(path, (ZSTANDARD,)):
        return None
    try:
        with _open(path) as file:
            if _is(path, JSON_LINES):
                return bad_json_line(file)
            return bad_csv_line(file, _separator(path)) if _is(path, COMMAS + TABS) else None
    except (OSError, EOFError, zlib.error):
        return None
