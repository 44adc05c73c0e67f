"""The numbers that a Parquet file claims, checked before it is decoded.

Polars allocates memory by the numbers of the footer and of page headers. If one of them is damaged, the allocation
fails and ends the process, which nothing in Python can catch. Here the footer and the header of each page are read,
which are in Thrift's compact protocol, and their numbers are compared with each other and with the size of the file.
Pages are stepped over, not decompressed.

Reference: https://github.com/apache/parquet-format, `parquet.thrift`.
"""

import mmap
from collections.abc import Iterator
from pathlib import Path

from cuolr.errors import InputError

MAGIC = b"PAR1"
TAIL_BYTES = 8  # the length of the footer and the magic number

# A log of 20 million sessions has one row per byte; thousands per byte are no data.
MAX_ROWS_PER_BYTE = 1_000
# So many rows are read, however small the file.
FREE_ROWS = 1 << 24
# What a page holds, at most, beyond 64 MB: so many times its size in the file. Pages are of 1 MB, as a rule.
MAX_PAGE_EXPANSION, FREE_PAGE_BYTES = 300, 64 << 20

# Kinds of fields in Thrift's compact protocol.
TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
INTEGERS = (I16, I32, I64)
MAX_DEPTH, MAX_VARINT_BITS = 32, 63

# Numbers of fields, by struct.
SCHEMA, ROW_GROUPS = 2, 4  # of the file
TYPE_LENGTH = 2  # of an element of the schema
COLUMNS, ROWS = 1, 3  # of a row group
METADATA = 3  # of a column chunk
TYPE, VALUES, CHUNK_BYTES, DATA_PAGE, DICTIONARY_PAGE = 1, 5, 7, 9, 11  # of its metadata
FIXED_LENGTH = 7  # a type
PAGE_TYPE, CONTENT_BYTES, PAGE_BYTES = 1, 2, 3  # of a page
DATA_HEADER, DICTIONARY_HEADER, DATA_HEADER_2 = 5, 7, 8
PAGE_VALUES = 1  # of each of these headers
NULLS, PAGE_ROWS, DEFINITION_BYTES, REPETITION_BYTES = 2, 3, 5, 6  # of the last


class _DamagedError(Exception):
    """What is wrong."""


def check_parquet(path: Path) -> None:
    """Raise `InputError` if a number of the footer or of a page header cannot be true.

    What is no Parquet file at all is left to its reader, who says so.
    """
    with path.open("rb") as file:
        size = file.seek(0, 2)
        if size < len(MAGIC) + TAIL_BYTES:
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            footer_bytes = int.from_bytes(content[-TAIL_BYTES:-4], "little")
            start = size - TAIL_BYTES - footer_bytes
            if content[-4:] != MAGIC or start < len(MAGIC):
                return
            try:
                _File(content, start).check()
            except _DamagedError as error:
                raise InputError(f"{path}: cannot be read: damaged: {error}") from None
            except IndexError:  # something ends after the file does
                raise InputError(f"{path}: cannot be read: damaged: it ends too early") from None


class _Thrift:
    """Values of Thrift's compact protocol, from a place on."""

    def __init__(self, content: "mmap.mmap | bytes", place: int) -> None:
        self.content, self.place = content, place

    def fields(self) -> Iterator[tuple[int, int]]:
        """Number and kind of each field of a struct; the caller reads or skips its value."""
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self.signed()
            yield number, head & 15

    def numbers(self) -> dict[int, int]:
        """The whole numbers of a struct, by field; others are skipped."""
        found = {}
        for number, kind in self.fields():
            if kind in INTEGERS:
                found[number] = self.signed()
            else:
                self.skip(kind)
        return found

    def elements(self) -> Iterator[None]:
        """Go through a list of structs, which the caller reads."""
        kind, length = self._list()
        if kind != STRUCT:
            raise _DamagedError("its footer has a list of something else")
        for _ in range(length):
            yield

    def skip(self, kind: int, depth: int = 0) -> None:
        """Step over a value."""
        if depth > MAX_DEPTH:
            raise _DamagedError(f"values nested more than {MAX_DEPTH} deep")
        if kind in INTEGERS:
            self._varint()
        elif kind == BINARY:
            length = self._varint()
            self.place += length
        elif kind == STRUCT:
            for _, inner in self.fields():
                self.skip(inner, depth + 1)
        elif kind in (LIST, SET):
            inner, length = self._list()
            for _ in range(length):
                self._skip_element(inner, depth)
        elif kind == MAP:
            if length := self._varint():
                kinds = self._byte()
                for _ in range(length):
                    self._skip_element(kinds >> 4, depth)
                    self._skip_element(kinds & 15, depth)
        elif kind in (BYTE, DOUBLE):
            self.place += 1 if kind == BYTE else 8
        elif kind not in (TRUE, FALSE):
            raise _DamagedError(f"a value of unknown kind {kind}")

    def signed(self) -> int:
        """A whole number of any size."""
        number = self._varint()
        return number >> 1 ^ -(number & 1)

    def _skip_element(self, kind: int, depth: int) -> None:
        # Only as fields have booleans their value in the kind.
        self.skip(BYTE if kind in (TRUE, FALSE) else kind, depth + 1)
        if self.place > len(self.content):
            raise IndexError

    def _list(self) -> tuple[int, int]:
        head = self._byte()
        return head & 15, head >> 4 if head >> 4 < 15 else self._varint()

    def _byte(self) -> int:
        byte = self.content[self.place]
        self.place += 1
        return byte

    def _varint(self) -> int:
        number = shift = 0
        while (byte := self._byte()) > 127:
            number |= (byte & 127) << shift
            shift += 7
            if shift > MAX_VARINT_BITS:
                raise _DamagedError("a number of more than 64 bits")
        return number | byte << shift


class _File:
    """A file, as its footer describes it."""

    def __init__(self, content: "mmap.mmap", footer: int) -> None:
        self.content, self.footer = content, footer
        self.max_values = max(FREE_ROWS, MAX_ROWS_PER_BYTE * len(content))
        self.longest = 0  # value of fixed length, in bytes
        self.rows = self.chunk_bytes = 0

    def check(self) -> None:
        read = _Thrift(self.content, self.footer)
        for number, kind in read.fields():
            if number == SCHEMA and kind == LIST:
                for _ in read.elements():
                    self.longest = max(self.longest, _counted(read.numbers(), TYPE_LENGTH))
            elif number == ROW_GROUPS and kind == LIST:
                for _ in read.elements():
                    self._row_group(read)
            else:
                read.skip(kind)

    def _row_group(self, read: _Thrift) -> None:
        for number, kind in read.fields():
            if number == COLUMNS and kind == LIST:
                for _ in read.elements():
                    self._chunk(read)
            elif number == ROWS and kind in INTEGERS:
                self.rows += _counted({ROWS: read.signed()}, ROWS)
                self._at_most(self.rows, self.max_values, "rows")
            else:
                read.skip(kind)

    def _chunk(self, read: _Thrift) -> None:
        for number, kind in read.fields():
            if number == METADATA and kind == STRUCT:
                self._pages(read.numbers())
            else:
                read.skip(kind)

    def _pages(self, chunk: dict[int, int]) -> None:
        """Go through the pages of a column chunk, as far as its values."""
        values, length = _counted(chunk, VALUES), _counted(chunk, CHUNK_BYTES)
        self._at_most(values, self.max_values, "values")
        if chunk.get(TYPE) == FIXED_LENGTH:
            self._at_most(values * self.longest, max(FREE_PAGE_BYTES, self.max_values), "bytes of values")
        # Chunks do not overlap, so that all of their pages are not more than the file has.
        self.chunk_bytes += length
        self._at_most(self.chunk_bytes, len(self.content), "bytes of columns")
        starts = (_counted(chunk, DATA_PAGE), _counted(chunk, DICTIONARY_PAGE))
        place = min((start for start in starts if start), default=0)  # some writers have 0 for no dictionary
        end = place + length
        self._at_most(end, self.footer, "bytes of columns")
        while values and place < end:
            page = _Page(_Thrift(self.content, place))
            place = page.end
            self._at_most(place, end, "bytes of pages")
            self._at_most(page.all_values, values if page.is_data else self.max_values, "values of a page")
            values -= page.all_values if page.is_data else 0

    def _at_most(self, claimed: int, possible: int, what: str) -> None:
        if claimed > possible:
            raise _DamagedError(f"it claims {claimed:,} {what}, and {possible:,} are possible")


class _Page:
    """What the header of a page claims: the place where it ends, and its number of values."""

    def __init__(self, read: _Thrift) -> None:
        self.is_data, self.all_values = False, 0
        sizes = {}
        for number, kind in read.fields():
            if number in (DATA_HEADER, DICTIONARY_HEADER, DATA_HEADER_2) and kind == STRUCT:
                header = read.numbers()
                self.is_data = number != DICTIONARY_HEADER
                self.all_values = _counted(header, PAGE_VALUES)
                if number == DATA_HEADER_2:
                    parts = [_counted(header, part) for part in (NULLS, PAGE_ROWS)]
                    if max(parts) > self.all_values:
                        raise _DamagedError(f"a page claims {max(parts):,} rows of {self.all_values:,} values")
                    sizes[number] = _counted(header, DEFINITION_BYTES) + _counted(header, REPETITION_BYTES)
            elif kind in INTEGERS:
                sizes[number] = read.signed()
            else:
                read.skip(kind)
        content, length = _counted(sizes, CONTENT_BYTES), _counted(sizes, PAGE_BYTES)
        if max(content, sizes.get(DATA_HEADER_2, 0)) > max(FREE_PAGE_BYTES, MAX_PAGE_EXPANSION * length):
            raise _DamagedError(f"a page claims {content:,} bytes in {length:,}")
        self.end = read.place + length


def _counted(numbers: dict[int, int], field: int) -> int:
    """A number of a struct that cannot be negative; 0 if it is not there."""
    number = numbers.get(field, 0)
    if number < 0:
        raise _DamagedError(f"it claims {number:,} where a number of something is expected")
    return number
