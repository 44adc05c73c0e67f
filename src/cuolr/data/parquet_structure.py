"""The numbers that a Parquet file claims, checked before it is decoded.

Polars allocates memory by the numbers of the footer and of page headers. If one of them is damaged, the allocation
fails and ends the process, which nothing in Python can catch. Here the footer and the header of each page are read,
which are in Thrift's compact protocol, and their numbers are compared with each other and with the size of the file.
Pages are stepped over, not decompressed.

Reference: https://github.com/apache/parquet-format, `parquet.thrift`.
"""

import base64
import mmap
from pathlib import Path

from cuolr.data.arrow_structure import check_arrow_schema
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
from cuolr.data.thrift import (
    ANY,
    BINARY,
    BYTE,
    DOUBLE,
    FALSE,
    INTEGERS,
    TRUE,
    Struct,
    Thrift,
)
from cuolr.errors import InputError

MAGIC = b"PAR1"

# Data pages that hold nothing; a page of a few bytes takes as long to step over as one of a megabyte.
MAX_EMPTY_PAGES = 1_000

# The structs of `parquet.thrift`: what each field holds, by number.
NUMBER, TEXT, TRUTH = INTEGERS, (BINARY,), (TRUE, FALSE)
EMPTY_STRUCTS: Struct = dict.fromkeys(range(1, 20), ANY)
TIME: Struct = {1: TRUTH, 2: EMPTY_STRUCTS}
LOGICAL_TYPE: Struct = {
    **EMPTY_STRUCTS,
    **{5: {1: NUMBER, 2: NUMBER}, 7: TIME, 8: TIME, 10: {1: (BYTE,), 2: TRUTH}, 16: {1: (BYTE,)}},
    **{17: {1: TEXT}, 18: {1: TEXT, 2: NUMBER}},
}
SCHEMA_ELEMENT: Struct = {**dict.fromkeys((1, 2, 3, 5, 6, 7, 8, 9), NUMBER), 4: TEXT, 10: LOGICAL_TYPE}
KEY_VALUE: Struct = {1: TEXT, 2: TEXT}
STATISTICS: Struct = {1: TEXT, 2: TEXT, 3: NUMBER, 4: NUMBER, 5: TEXT, 6: TEXT, 7: TRUTH, 8: TRUTH, 9: NUMBER}
COLUMN_METADATA: Struct = {
    **dict.fromkeys((1, 4, 5, 6, 7, 9, 10, 11, 14, 15), NUMBER),
    **{2: [NUMBER], 3: [TEXT], 8: [KEY_VALUE], 12: STATISTICS, 13: [{1: NUMBER, 2: NUMBER, 3: NUMBER}]},
    **{16: {1: NUMBER, 2: [NUMBER], 3: [NUMBER]}, 17: {1: dict.fromkeys(range(1, 9), (DOUBLE,)), 2: [NUMBER]}},
}
COLUMN_CHUNK: Struct = {
    **dict.fromkeys((2, 4, 5, 6, 7), NUMBER),
    **{1: TEXT, 3: COLUMN_METADATA, 8: ANY, 9: TEXT},
}
ROW_GROUP: Struct = {
    **dict.fromkeys((2, 3, 5, 6, 7), NUMBER),
    **{1: [COLUMN_CHUNK], 4: [{1: NUMBER, 2: TRUTH, 3: TRUTH}]},
}
CIPHER: Struct = {1: TEXT, 2: TEXT, 3: TRUTH}
FILE: Struct = {
    **{1: NUMBER, 2: [SCHEMA_ELEMENT], 3: NUMBER, 4: [ROW_GROUP], 5: [KEY_VALUE], 6: TEXT, 7: [EMPTY_STRUCTS]},
    **{8: {1: CIPHER, 2: CIPHER}, 9: TEXT},
}
DATA_PAGE_HEADER: Struct = {**dict.fromkeys((1, 2, 3, 4), NUMBER), 5: STATISTICS}
DATA_PAGE_HEADER_2: Struct = {**dict.fromkeys((1, 2, 3, 4, 5, 6), NUMBER), 7: TRUTH, 8: STATISTICS}
PAGE_HEADER: Struct = {
    **dict.fromkeys((1, 2, 3, 4), NUMBER),
    **{5: DATA_PAGE_HEADER, 6: ANY, 7: {1: NUMBER, 2: NUMBER, 3: TRUTH}, 8: DATA_PAGE_HEADER_2},
}

# Numbers of fields, by struct.
SCHEMA, ROW_GROUPS, KEY_VALUES = 2, 4, 5  # of the file
ARROW_SCHEMA = b"ARROW:schema"  # a key
TYPE_LENGTH, CHILDREN = 2, 5  # of an element of the schema
COLUMNS, ROWS = 1, 3  # of a row group
METADATA, CRYPTO_METADATA = 3, 8  # of a column chunk
TYPE, VALUES, CHUNK_BYTES, DATA_PAGE, DICTIONARY_PAGE = 1, 5, 7, 9, 11  # of its metadata
FIXED_LENGTH = 7  # a type
PAGE_TYPE, CONTENT_BYTES, PAGE_BYTES = 1, 2, 3  # of a page
# Also of a page: the header of its type (0 = data, 1 = index, 2 = dictionary, 3 = data of version 2).
HEADER_OF_TYPE = DATA_HEADER, INDEX_HEADER, DICTIONARY_HEADER, DATA_HEADER_2 = 5, 6, 7, 8
PAGE_VALUES = 1  # of each of these headers
ENCODING = {DATA_HEADER: 2, DATA_HEADER_2: 4}  # of headers of data
SHARED_PREFIXES = 7  # an encoding: of each text, how much of the one before it is its beginning
NULLS, PAGE_ROWS, DEFINITION_BYTES, REPETITION_BYTES = 2, 3, 5, 6  # of the last


def check_parquet(path: Path) -> int:
    """Raise `InputError` if a number of the footer or of a page header cannot be true.

    Returns:
        The bytes of text that pages with shared prefixes hold at most; those of other pages are in the file.
    """
    try:
        return check_footer(path, MAGIC, lambda content, start: _File(content, start).check()) or 0
    except _EncryptedError:
        raise InputError(f"{path}: cannot be read: it is encrypted; write it without encryption") from None


class _EncryptedError(Exception):
    pass


class _File:
    """A file, as its footer describes it."""

    def __init__(self, content: "mmap.mmap", footer: int) -> None:
        self.content, self.footer = content, footer
        self.max_values = max(FREE_ROWS, MAX_ROWS_PER_BYTE * len(content))
        self.longest = 0  # value of fixed length, in bytes
        self.has_schema = False
        self.rows = self.values = self.fixed_bytes = self.chunk_bytes = self.empty_pages = self.prefixed_bytes = 0

    def check(self) -> int:
        read = Thrift(self.content, self.footer)
        for number, kind in read.fields(FILE):
            if number == SCHEMA:
                self._schema(read)
            elif number == ROW_GROUPS:
                if not self.has_schema:
                    raise DamagedError("its columns are not described before they are listed")
                for _ in read.elements():
                    self._row_group(read)
            elif number == KEY_VALUES:
                self._metadata(read)
            else:
                read.skip(kind, FILE.get(number))
        return self.prefixed_bytes

    def _schema(self, read: Thrift) -> None:
        self.has_schema = True
        missing: list[int] = []  # columns of each group that is not complete
        for _ in read.elements():
            element = read.numbers(SCHEMA_ELEMENT)
            self.longest = max(self.longest, _counted(element, TYPE_LENGTH))
            if missing:
                missing[-1] -= 1
            if children := _counted(element, CHILDREN):
                missing.append(children)
                at_most(len(missing), MAX_NESTED_COLUMNS, "columns within columns")
            while missing and not missing[-1]:
                missing.pop()

    def _metadata(self, read: Thrift) -> None:
        for _ in read.elements():
            key, value = read.texts(KEY_VALUE, (1, 2))
            if key == ARROW_SCHEMA:
                try:
                    check_arrow_schema(base64.b64decode(value))
                except ValueError:
                    raise DamagedError("its description for Arrow is not in base 64") from None

    def _row_group(self, read: Thrift) -> None:
        for number, kind in read.fields(ROW_GROUP):
            if number == COLUMNS:
                for _ in read.elements():
                    self._chunk(read)
            elif number == ROWS:
                self.rows += counted(read.signed())
                at_most(self.rows, self.max_values, "rows")
            else:
                read.skip(kind, ROW_GROUP.get(number))

    def _chunk(self, read: Thrift) -> None:
        chunks = []
        for number, kind in read.fields(COLUMN_CHUNK):
            if number == METADATA:
                chunks.append(read.numbers(COLUMN_METADATA))
            elif number == CRYPTO_METADATA:
                raise _EncryptedError
            else:
                read.skip(kind, COLUMN_CHUNK.get(number))
        for chunk in chunks:
            self._pages(chunk)

    def _pages(self, chunk: dict[int, int]) -> None:
        """Go through the pages of a column chunk, as far as its values."""
        values, length = _counted(chunk, VALUES), _counted(chunk, CHUNK_BYTES)
        self.values += values
        at_most(self.values, self.max_values, "values")
        at_most(_counted(chunk, TYPE), FIXED_LENGTH, "types of values")
        if chunk.get(TYPE) == FIXED_LENGTH:
            self.fixed_bytes += values * self.longest
            at_most(self.fixed_bytes, max(FREE_BYTES, self.max_values), "bytes of values")
        # Chunks do not overlap, so that all of their pages are not more than the file has.
        self.chunk_bytes += length
        at_most(self.chunk_bytes, len(self.content), "bytes of columns")
        starts = (_counted(chunk, DATA_PAGE), _counted(chunk, DICTIONARY_PAGE))
        place = min((start for start in starts if start), default=0)  # some writers have 0 for no dictionary
        end = place + length
        at_most(end, self.footer, "bytes of columns")
        while values and place < end:
            page = _Page(Thrift(self.content, place))
            place = page.end
            at_most(place, end, "bytes of pages")
            at_most(page.all_values, values if page.is_data else self.max_values, "values of a page")
            values -= page.all_values if page.is_data else 0
            self.prefixed_bytes += page.prefixed_bytes
            self.empty_pages += not page.all_values
            at_most(self.empty_pages, MAX_EMPTY_PAGES, "pages without values")


class _Page:
    """What the header of a page claims: its end, its values, and the most that texts with shared prefixes hold."""

    def __init__(self, read: Thrift) -> None:
        self.is_data, self.all_values, has_prefixes = False, 0, False
        sizes, headers = {}, []
        for number, kind in read.fields(PAGE_HEADER):
            if number in HEADER_OF_TYPE:
                headers.append(number)
                self.is_data = number in (DATA_HEADER, DATA_HEADER_2)
                header = read.numbers(PAGE_HEADER[number])  # type: ignore[arg-type]
                self.all_values = _counted(header, PAGE_VALUES)
                has_prefixes = header.get(ENCODING.get(number, 0)) == SHARED_PREFIXES
                if number == DATA_HEADER_2:
                    parts = [_counted(header, part) for part in (NULLS, PAGE_ROWS)]
                    if max(parts) > self.all_values:
                        raise DamagedError(f"a page claims {max(parts):,} rows of {self.all_values:,} values")
                    sizes[number] = _counted(header, DEFINITION_BYTES) + _counted(header, REPETITION_BYTES)
            elif kind in INTEGERS:
                sizes[number] = read.signed()
            else:
                read.skip(kind)
        page_type = _counted(sizes, PAGE_TYPE)
        if page_type >= len(HEADER_OF_TYPE) or headers != [HEADER_OF_TYPE[page_type]]:
            raise DamagedError("a page whose header is not that of its type")
        content, length = _counted(sizes, CONTENT_BYTES), _counted(sizes, PAGE_BYTES)
        if max(content, sizes.get(DATA_HEADER_2, 0)) > max(FREE_BYTES, MAX_EXPANSION * length):
            raise DamagedError(f"a page claims {content:,} bytes in {length:,}")
        self.end = read.place + length
        self.prefixed_bytes = self.all_values * content if has_prefixes else 0


def _counted(numbers: dict[int, int], field: int) -> int:
    """A number of a struct that cannot be negative; 0 if it is not there."""
    return counted(numbers.get(field, 0))
