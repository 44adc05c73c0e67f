"""How large the texts of a table are, found before anything is made of them.

A Parquet or Feather file can have a text once, however many rows it is in; to sort or hash them takes the memory and
time of all. NumPy's arrays of texts give each the room of the longest.
"""

import mmap
import os
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

import numpy as np
import polars as pl

from cuolr.data.column_files import MAX_ROWS_PER_BYTE
from cuolr.errors import InputError
from cuolr.types import Strings

# Texts of at most this size are read whatever their file.
FREE_BYTES = 64 << 20
# The description of columns for Arrow, which makes categories of texts; and a key of this length that says nothing.
ARROW_SCHEMA, NO_SCHEMA = b"\x0cARROW:schema", b"\x0cnot:a_schema"
# Files up to this size are copied to memory to read them without it.
MAX_COPIED_BYTES = 1 << 30
# Beside the texts, what the process takes that decodes texts with shared prefixes.
ROOM_BYTES = 192 << 20
# Each thread takes room of its own.
ONE_THREAD = {"POLARS_MAX_THREADS": "1", "POLARS_ASYNC_THREAD_COUNT": "1", "MALLOC_ARENA_MAX": "1"}
# An array of texts has at most so many times the characters of its texts, beyond 256 MB.
MAX_PADDING, FREE_ARRAY_BYTES, CHARACTER_BYTES = 64, 256 << 20, 4


def allowed_bytes(path: Path) -> int:
    """The bytes of text that a file may hold."""
    return max(FREE_BYTES, MAX_ROWS_PER_BYTE * path.stat().st_size)


def check_parquet_texts(path: Path, columns: Collection[str] | None = None) -> None:
    """Raise `InputError` if the texts of a Parquet file are far larger than the file; errors of polars are not caught.

    Args:
        path: The file, whose structure was checked.
        columns: The columns that will be read; None = all.
    """
    table = pl.scan_parquet(path, glob=False)
    if _has_categories(table.collect_schema()) and path.stat().st_size <= MAX_COPIED_BYTES:
        # Polars hashes the text of each row to find its category.
        table = pl.scan_parquet(_without_arrow_schema(path))
    check_texts(path, table, columns)


def check_texts(path: Path, table: pl.LazyFrame, columns: Collection[str] | None = None) -> None:
    """Likewise of a table that was read from a file."""
    schema = table.collect_schema()
    sizes = [
        size.alias(name)
        for name, dtype in schema.items()
        if (columns is None or name in columns) and (size := _text_bytes(pl.col(name), dtype)) is not None
    ]
    held = sum(table.select(sizes).collect(engine="streaming").row(0)) if sizes else 0
    if held > allowed_bytes(path):
        raise InputError(f"{path}: refused, because it holds {held:,} bytes of text in {path.stat().st_size:,}")


def check_prefixed_texts(path: Path) -> None:
    """Raise `InputError` if texts that share their beginnings are far larger than their Parquet file.

    Such a page says of each text how much of the one before it is its beginning, so that a text of a megabyte can take
    two bytes in all rows but the first, and polars makes all of them. A process of its own does so, with little memory.
    """
    if not sys.executable or sys.platform != "linux":  # elsewhere there is no such limit
        return
    # -P: it imports what this process would, and nothing that lies in the current folder.
    command = [sys.executable, "-P", "-m", __name__, str(path.resolve()), str(allowed_bytes(path) + ROOM_BYTES)]
    known = {"PYTHONPATH": os.pathsep.join(folder for folder in sys.path if folder)}
    ended = subprocess.run(command, env={**os.environ, **known, **ONE_THREAD}, capture_output=True, check=False)
    if ended.returncode:
        raise InputError(
            f"{path}: refused, because its texts share their beginnings (DELTA_BYTE_ARRAY) and are larger than "
            f"{allowed_bytes(path):,} bytes in a file of {path.stat().st_size:,}, or are damaged; write it without"
        )


def text_array(column: pl.Series, name: str = "") -> Strings:
    """A column of texts or whole numbers as an array of texts.

    Args:
        column: At least one value, none missing.
        name: What to call it in messages; its own name if empty.
    """
    texts = column.cast(pl.String)
    lengths = texts.str.len_chars()
    longest, total = int(lengths.max() or 0), int(lengths.cast(pl.Int64).sum())  # type: ignore[arg-type]
    needed = CHARACTER_BYTES * longest * len(texts)
    if needed > max(FREE_ARRAY_BYTES, CHARACTER_BYTES * MAX_PADDING * total):
        raise InputError(
            f"{name or column.name}: one text has {longest:,} characters, and {len(texts):,} texts have "
            f"{total / len(texts):,.0f} on average; all would take {needed / 1e9:,.1f} GB; shorten it"
        )
    values: Strings = texts.to_numpy().astype(np.str_)
    return values


def _has_categories(schema: pl.Schema) -> bool:
    return any(_holds(dtype, (pl.Categorical, pl.Enum)) for dtype in schema.values())


def _holds(dtype: pl.DataType, kinds: tuple[type[pl.DataType], ...]) -> bool:
    if isinstance(dtype, pl.List | pl.Array):
        return _holds(dtype.inner, kinds)  # type: ignore[arg-type]
    if isinstance(dtype, pl.Struct):
        return any(_holds(field.dtype, kinds) for field in dtype.fields)  # type: ignore[arg-type]
    return isinstance(dtype, kinds)


def _without_arrow_schema(path: Path) -> bytes:
    """The content of a Parquet file whose texts are all read as such."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) as content:
        place = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
        while (place := content.find(ARROW_SCHEMA, place)) >= 0:
            content[place : place + len(NO_SCHEMA)] = NO_SCHEMA
        return content[:]


def _text_bytes(column: pl.Expr, dtype: pl.DataType) -> pl.Expr | None:
    """The bytes of a column's texts, also in lists and structs; None = it has none."""
    if isinstance(dtype, pl.List | pl.Array):
        return _text_bytes(column.explode(), dtype.inner)  # type: ignore[arg-type]
    if isinstance(dtype, pl.Struct):
        fields = [_text_bytes(column.struct.field(field.name), field.dtype) for field in dtype.fields]  # type: ignore[arg-type]
        known = [size for size in fields if size is not None]
        return pl.sum_horizontal(known) if known else None
    if isinstance(dtype, pl.Categorical | pl.Enum):
        sizes = column.cat.len_bytes()
    elif isinstance(dtype, pl.String | pl.Binary):
        sizes = column.str.len_bytes() if isinstance(dtype, pl.String) else column.bin.size()
    else:
        return None
    return sizes.cast(pl.UInt64).sum()


def _decode(path: Path, memory: int) -> None:
    """Make all texts of a Parquet file, with so many bytes of memory more than now; the process ends without them."""
    import resource

    table = pl.scan_parquet(path, glob=False)
    schema = table.collect_schema()
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + memory
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    sizes = [size for name, dtype in schema.items() if (size := _text_bytes(pl.col(name), dtype)) is not None]
    for size in sizes:
        table.select(size).collect(engine="streaming")


if __name__ == "__main__":
    _decode(Path(sys.argv[1]), int(sys.argv[2]))
