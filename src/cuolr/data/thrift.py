"""Thrift's compact protocol, in which Parquet files describe themselves: numbers are read, all else is stepped over.

Readers take a field for what its number says and do not look at the kind that the file gives it, so a field of another
kind would be read differently there than here. It is refused.

Reference: https://github.com/apache/thrift, `doc/specs/thrift-compact-protocol.md`.
"""

import mmap
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from cuolr.data.column_files import DamagedError

# Kinds of fields.
TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
INTEGERS = (I16, I32, I64)
MAX_DEPTH, MAX_VARINT_BITS = 32, 63

# What a field holds: one of some kinds, a list, or a struct of fields by number; others may be of any kind.
Struct: TypeAlias = Mapping[int, "Form"]
Form: TypeAlias = "tuple[int, ...] | list[Form] | Struct"
ANY: Struct = {}


class Thrift:
    """Values of the compact protocol, from a place on."""

    def __init__(self, content: "mmap.mmap | bytes", place: int) -> None:
        self.content, self.place = content, place

    def fields(self, struct: Struct) -> Iterator[tuple[int, int]]:
        """Number and kind of each field of a struct; the caller reads or skips its value."""
        number = 0
        while head := self._byte():
            number, kind = number + (head >> 4) if head >> 4 else self.signed(), head & 15
            if number in struct and not _is_of(kind, struct[number]):
                raise DamagedError(f"a field of kind {kind} where another is expected")
            yield number, kind

    def numbers(self, struct: Struct) -> dict[int, int]:
        """The whole numbers of a struct, by field; others are skipped."""
        found = {}
        for number, kind in self.fields(struct):
            if kind in INTEGERS:
                found[number] = self.signed()
            else:
                self.skip(kind, struct.get(number))
        return found

    def texts(self, struct: Struct, wanted: tuple[int, ...]) -> list[bytes]:
        """Some texts of a struct, empty where one is missing; others are skipped."""
        found = dict.fromkeys(wanted, b"")
        for number, kind in self.fields(struct):
            if number in wanted and kind == BINARY:
                length = self._varint()
                found[number] = self.content[self.place : self.place + length]
                self.place += length
            else:
                self.skip(kind, struct.get(number))
        return list(found.values())

    def elements(self) -> Iterator[None]:
        """Go through a list of structs, which the caller reads."""
        kind, length = self._list()
        if kind != STRUCT:
            raise DamagedError(f"a list of kind {kind} where another is expected")
        for _ in range(length):
            yield

    def skip(self, kind: int, form: "Form | None" = None, depth: int = 0) -> None:
        """Step over a value."""
        if depth > MAX_DEPTH:
            raise DamagedError(f"values nested more than {MAX_DEPTH} deep")
        if kind in INTEGERS:
            self._varint()
        elif kind == BINARY:
            length = self._varint()
            self.place += length
        elif kind == STRUCT:
            struct = form if isinstance(form, Mapping) else ANY
            for number, inner in self.fields(struct):
                self.skip(inner, struct.get(number), depth + 1)
        elif kind in (LIST, SET):
            inner, length = self._list()
            element = form[0] if isinstance(form, list) else None
            if length and element is not None and not _is_of(inner, element):
                raise DamagedError(f"a list of kind {inner} where another is expected")
            for _ in range(length):
                self._skip_element(inner, element, depth)
        elif kind == MAP:
            if length := self._varint():
                kinds = self._byte()
                for _ in range(length):
                    self._skip_element(kinds >> 4, None, depth)
                    self._skip_element(kinds & 15, None, depth)
        elif kind in (BYTE, DOUBLE):
            self.place += 1 if kind == BYTE else 8
        elif kind not in (TRUE, FALSE):
            raise DamagedError(f"a value of unknown kind {kind}")

    def signed(self) -> int:
        """A whole number of any size."""
        number = self._varint()
        return number >> 1 ^ -(number & 1)

    def _skip_element(self, kind: int, form: "Form | None", depth: int) -> None:
        # Only as fields have booleans their value in the kind.
        self.skip(BYTE if kind in (TRUE, FALSE) else kind, form, depth + 1)
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
                raise DamagedError("a number of more than 64 bits")
        return number | byte << shift


def _is_of(kind: int, form: Form) -> bool:
    if isinstance(form, tuple):
        return kind in form
    return kind == (LIST if isinstance(form, list) else STRUCT)
