"""The numbers that an Arrow file (Feather) claims, checked before it is decoded.

Polars goes down nested columns by recursion, which ends the process where the stack does, and allocates what a
compressed buffer claims to hold. Here the footer and the header of each batch are read, which are FlatBuffers, and
compared with each other and with the size of the file. Buffers are stepped over, not decompressed. Parquet files have
a description of their columns in the same form among their metadata.

Reference: https://github.com/apache/arrow, `format/File.fbs`, `Message.fbs` and `Schema.fbs`.
"""

import mmap
import struct
from pathlib import Path
from typing import Self, TypeAlias

from cuolr.data.column_files import (
    FREE_BYTES,
    FREE_ROWS,
    MAX_EXPANSION,
    MAX_NESTED_COLUMNS,
    MAX_ROWS_PER_BYTE,
    DamagedError,
    at_most,
    check_footer,
    counted,
)

MAGIC = b"ARROW1"
CONTINUATION = 0xFFFFFFFF  # before the length of a header, in all but the first versions

# Columns with those within them: tables of FlatBuffers can be used many times.
MAX_FIELDS = 100_000

# Numbers of fields, by table.
FOOTER_SCHEMA, DICTIONARIES, BATCHES = 1, 2, 3
FIELDS = 1  # of a schema
CHILDREN = 5  # of a field
HEADER_TYPE, HEADER = 1, 2  # of a message
SCHEMA_TYPE, DICTIONARY_TYPE, BATCH_TYPE = 1, 2, 3
DICTIONARY_DATA = 1
ROWS, NODES, BUFFERS, COMPRESSION = 0, 1, 2, 3  # of a batch
BLOCK, PAIR = struct.Struct("<qi4xq"), struct.Struct("<qq")

Content: TypeAlias = "mmap.mmap | bytes"


def check_arrow(path: Path) -> None:
    """Raise `InputError` if a number of the footer or of the header of a batch cannot be true; see `check_footer`."""
    check_footer(path, MAGIC, _check_file)


def check_arrow_schema(message: bytes) -> None:
    """Raise `DamagedError` if columns that a message describes are nested too deeply."""
    header = _Table.root(message, 8 if message[:4] == b"\xff" * 4 else 0)
    if header.number(HEADER_TYPE) == SCHEMA_TYPE:
        _check_schema(header.table(HEADER))


class _Table:
    """A table of FlatBuffers."""

    def __init__(self, content: Content, place: int) -> None:
        self.content, self.place = content, place
        self._fields = place - _read("<i", content, place)

    @classmethod
    def root(cls, content: Content, start: int) -> Self:
        return cls(content, start + _read("<I", content, start))

    def _place(self, field: int) -> int | None:
        """Where a field is; None = it is not there."""
        entry = 4 + 2 * field
        if entry + 2 > _read("<H", self.content, self._fields):
            return None
        offset = _read("<H", self.content, self._fields + entry)
        return self.place + offset if offset else None

    def number(self, field: int, form: str = "<B") -> int:
        place = self._place(field)
        return 0 if place is None else _read(form, self.content, place)

    def has(self, field: int) -> bool:
        return self._place(field) is not None

    def table(self, field: int) -> "_Table":
        place = self._place(field)
        if place is None:
            raise DamagedError("something is missing")
        return _Table(self.content, place + _read("<I", self.content, place))

    def vector(self, field: int, size: int) -> range:
        """The places of its elements, which are of this size in bytes."""
        place = self._place(field)
        if place is None:
            return range(0)
        start = place + _read("<I", self.content, place)
        first, length = start + 4, _read("<I", self.content, start)
        if first + length * size > len(self.content):
            raise DamagedError("it ends too early")
        return range(first, first + length * size, size)

    def tables(self, field: int) -> "list[_Table]":
        places = self.vector(field, 4)
        at_most(len(places), MAX_FIELDS, "columns")
        return [_Table(self.content, place + _read("<I", self.content, place)) for place in places]


def _read(form: str, content: Content, place: int) -> int:
    if not 0 <= place <= len(content) - struct.calcsize(form):
        raise DamagedError("it ends too early")
    number: int = struct.unpack_from(form, content, place)[0]
    return number


def _check_file(content: Content, start: int) -> None:
    footer = _Table.root(content, start)
    _check_schema(footer.table(FOOTER_SCHEMA))
    claims = _Claims(len(content))
    for field, kind in ((DICTIONARIES, DICTIONARY_TYPE), (BATCHES, BATCH_TYPE)):
        for place in footer.vector(field, BLOCK.size):
            block = BLOCK.unpack_from(content, place)
            claims.add_block(*block)
            offset, head_bytes, _ = block
            message = _Table.root(content, offset + (8 if _read("<I", content, offset) == CONTINUATION else 4))
            if message.number(HEADER_TYPE) != kind:
                raise DamagedError("a batch of another kind than its footer says")
            batch = message.table(HEADER)
            batch = batch.table(DICTIONARY_DATA) if kind == DICTIONARY_TYPE else batch
            _check_batch(batch, offset + head_bytes, claims)


def _check_schema(schema: _Table) -> None:
    level, seen = schema.tables(FIELDS), 0
    for depth in range(MAX_NESTED_COLUMNS + 1):
        seen += len(level)
        at_most(seen, MAX_FIELDS, "columns")
        if not level:
            return
        if depth == MAX_NESTED_COLUMNS:
            raise DamagedError(f"columns nested more than {MAX_NESTED_COLUMNS} deep")
        below: list[_Table] = []
        for field in level:
            below += field.tables(CHILDREN)
            if len(below) > MAX_FIELDS:
                break
        level = below


def _check_batch(batch: _Table, body: int, claims: "_Claims") -> None:
    claims.add_rows(batch.number(ROWS, "<q"))
    content = batch.content
    for place in batch.vector(NODES, PAIR.size):
        claims.add_values(PAIR.unpack_from(content, place)[0])
    is_compressed = batch.has(COMPRESSION)
    for place in batch.vector(BUFFERS, PAIR.size):
        offset, length = PAIR.unpack_from(content, place)
        if offset < 0 or length < 0 or body + offset + length > len(content):
            raise DamagedError("a buffer does not lie within the file")
        # −1 = not compressed after all.
        held = _read("<q", content, body + offset) if is_compressed and length >= 8 else -1
        claims.add_bytes(length if held == -1 else held)


class _Claims:
    """What a file claims to hold in all of its batches."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.max_values = max(FREE_ROWS, MAX_ROWS_PER_BYTE * size)
        self.max_bytes = max(FREE_BYTES, MAX_EXPANSION * size)
        self.blocks = self.rows = self.values = self.bytes = 0

    def add_block(self, offset: int, head_bytes: int, body_bytes: int) -> None:
        # Blocks do not overlap, so that all of them are not more than the file has.
        self.blocks += counted(head_bytes) + counted(body_bytes)
        at_most(max(self.blocks, counted(offset) + head_bytes + body_bytes), self.size, "bytes of batches")

    def add_rows(self, rows: int) -> None:
        self.rows += counted(rows)
        at_most(self.rows, self.max_values, "rows")

    def add_values(self, values: int) -> None:
        self.values += counted(values)
        at_most(self.values, self.max_values, "values")

    def add_bytes(self, held: int) -> None:
        self.bytes += counted(held)
        at_most(self.bytes, self.max_bytes, "bytes of values")
