"""A text file, plain or gzip, in blocks of whole lines, and the columns of JSON lines, found block by block."""

import gzip
import zlib
from collections.abc import Iterable, Iterator
from io import BytesIO
from pathlib import Path

import polars as pl

from cuolr.data.compressed_files import open_gzip
from cuolr.errors import InputError, unreadable
from cuolr.progress import Progress

# A longer line is not text.
MAX_LINE_BYTES = 8 << 20
NEWLINE = b"\n"


def blocks_of_lines(path: Path, block_bytes: int, progress: Progress | None) -> Iterator[tuple[int, bytes]]:
    """Blocks of whole lines, each with the number of its first line; gzip is recognised by its content.

    Args:
        path: The file.
        block_bytes: Approximate size of a block.
        progress: Called with the number of bytes of the file that were read since the last call.

    Raises:
        InputError: If the file cannot be read, or, after all lines before the damage, if it is damaged.
    """
    line, rest, damage = 1, b"", None
    try:
        with path.open("rb") as raw:
            compressed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            file = open_gzip(path, raw) if compressed else raw
            seen, ended = 0, False
            while not ended:
                parts = [rest]
                wanted = max(block_bytes, len(rest))  # of a long line as much again, so that its end is found in time
                while not ended and sum(map(len, parts)) < wanted + len(rest):
                    try:
                        # read1 returns the data before a damaged place; read does not.
                        parts.append(file.read1(block_bytes))
                        ended = not parts[-1]
                    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                        damage, ended = error, True
                if progress is not None:
                    progress(raw.tell() - seen)
                    seen = raw.tell()
                data = b"".join(parts)
                end = len(data) if ended and damage is None else data.rfind(NEWLINE) + 1
                text, rest = data[:end], data[end:]
                if len(rest) > MAX_LINE_BYTES:
                    where = f"{path}:{line + text.count(NEWLINE)}"
                    raise InputError(
                        f"{where}: expected lines of text, found one of more than {MAX_LINE_BYTES:,} bytes"
                    )
                if text:
                    yield line, text.removeprefix(b"\xef\xbb\xbf") if line == 1 else text
                    line += text.count(NEWLINE)
    except OSError as error:
        raise unreadable(path, error) from None
    if damage is not None:
        raise InputError(f"{path}:{line}: damaged gzip data: {damage}")


# Bytes of text whose columns are found at a time; it takes the product of lines and different names.
BLOCK_BYTES = 1 << 17
MAX_COLUMNS = 10_000


def json_columns(path: Path, progress: Progress) -> pl.Schema:
    """The types that hold the values of all lines, as polars finds them.

    Args:
        path: JSON lines, gzipped or not.
        progress: Called with the number of bytes of the file that were read since the last call.
    """
    return columns_of_blocks(path, (text for _, text in blocks_of_lines(path, BLOCK_BYTES, progress)))


def columns_of_blocks(path: Path, blocks: Iterable[bytes]) -> pl.Schema:
    """The same of blocks of lines."""
    known = pl.Schema()
    try:
        for text in blocks:
            if text.isspace():
                continue
            found = pl.scan_ndjson(BytesIO(text), infer_schema_length=None).collect_schema()
            if new := [name for name, dtype in found.items() if known.get(name) != dtype]:
                both = [pl.DataFrame(schema={name: of[name] for name in new if name in of}) for of in (known, found)]
                known = pl.Schema({**known, **pl.concat(both, how="diagonal_relaxed").schema})
                check_width(path, sum(map(_fields, known.dtypes())))
    except RecursionError:
        raise InputError(f"{path}: values are nested too deeply") from None
    return known


def check_width(path: Path, columns: int) -> None:
    """Each column takes milliseconds and kilobytes, also that of a table without rows."""
    if columns > MAX_COLUMNS:
        raise InputError(f"{path}: expected at most {MAX_COLUMNS:,} columns, found {columns:,}")


def _fields(dtype: pl.DataType) -> int:
    """The number of columns within a column, or one."""
    if isinstance(dtype, pl.List):
        return _fields(dtype.inner)  # type: ignore[arg-type]
    if isinstance(dtype, pl.Struct):
        fields: list[int] = [_fields(field.dtype) for field in dtype.fields]  # type: ignore[arg-type]
        return max(1, sum(fields))
    return 1
