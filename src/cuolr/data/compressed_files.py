"""Compressed files of unknown origin: some hundred bytes may hold a gigabyte of zeros or a billion equal rows.

Zstandard is that of RFC 8878: frames of blocks, each of which says how many bytes it takes and, if it repeats one byte,
how often; a compressed block holds at most 128 KB. So the size of the content is nearly known without decompressing it.
"""

import gzip
import io
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import IO

import polars as pl

from cuolr.data.column_files import FREE_ROWS, MAX_ROWS_PER_BYTE
from cuolr.data.parquet_structure import check_parquet
from cuolr.data.text_sizes import allowed_bytes, check_parquet_texts, check_prefixed_texts
from cuolr.errors import InputError

# Logs and features take a fifth to a fiftieth of their size; gzip can make zeros a thousandth.
MAX_EXPANSION = 300
# Text of at most this size is read whatever its expansion.
FREE_BYTES = 64 << 20
BUFFER_BYTES = 1 << 20


def open_gzip(path: Path, raw: IO[bytes]) -> io.BufferedReader:
    """The content of a gzip file; reading raises `InputError` once it is far larger than such text can be.

    Args:
        path: For messages.
        raw: The opened file.
    """
    return io.BufferedReader(_Expanded(path, raw), BUFFER_BYTES)


class _Expanded(io.RawIOBase):
    def __init__(self, path: Path, raw: IO[bytes]) -> None:
        self._path, self._raw, self._file, self._read = path, raw, gzip.GzipFile(fileobj=raw), 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "bytearray | memoryview") -> int:  # type: ignore[override]
        # read1 returns the data before a damaged place; read does not.
        data = self._file.read1(len(buffer))
        self._read += len(data)
        if self._read > max(FREE_BYTES, MAX_EXPANSION * self._raw.tell()):
            raise InputError(
                f"{self._path}: refused, because its content is more than {MAX_EXPANSION} times as large as the file; "
                "decompress it with gunzip if you trust it"
            )
        buffer[: len(data)] = data
        return len(data)


GZIP, ZLIB = b"\x1f\x8b", (b"x\x01", b"x\x9c", b"x\xda")
FRAME, SKIPPED_FRAMES = 0xFD2FB528, range(0x184D2A50, 0x184D2A60)
LARGEST_BLOCK = 128 << 10
RAW, REPEATED = 0, 1
# Bytes of the fields of a frame's header, by the bits that say so.
DICTIONARY_BYTES, SIZE_BYTES = (0, 1, 2, 4), (0, 2, 4, 8)


def check_expansion(path: Path) -> None:
    """Raise `InputError` if compressed text is far larger than such a file can hold, whatever the name of the file.

    Polars goes by the first bytes of a text and decompresses all of it at once.
    """
    with path.open("rb") as file:
        start = file.read(4)
        file.seek(0)
        if start[:2] in ZLIB:
            raise InputError(f"{path}: refused, because it is compressed by zlib; decompress it, or use gzip")
        if start[:2] == GZIP:
            content = open_gzip(path, file)
            while content.read(BUFFER_BYTES):
                pass
    if int.from_bytes(start, "little") == FRAME:
        check_zstandard(path)


def check_zstandard(path: Path, strict: bool = False) -> None:
    """Raise `InputError` if the content is far larger than text in a file of this size can be.

    Args:
        path: The file.
        strict: Raise if it is compressed by something else, too.
    """
    size = path.stat().st_size
    allowed = max(FREE_BYTES, MAX_EXPANSION * size)
    content = 0
    with path.open("rb") as file:
        if strict and int.from_bytes(file.read(4), "little") != FRAME:
            raise InputError(f"{path}: expected a file that is compressed by zstd, found other bytes")
        file.seek(0)
        for block in _block_sizes(file):
            content += block
            if content > allowed:
                raise InputError(
                    f"{path}: refused, because its content is more than {MAX_EXPANSION} times as large as the file; "
                    "decompress it with unzstd if you trust it"
                )


def _block_sizes(file: IO[bytes]) -> Iterator[int]:
    """The bytes that each block holds at most; ends where the file is damaged, which its reader will notice."""
    while len(start := file.read(4)) == 4:
        magic = int.from_bytes(start, "little")
        if magic in SKIPPED_FRAMES:
            file.seek(int.from_bytes(file.read(4), "little"), 1)
            continue
        if magic != FRAME or not (descriptor := file.read(1)):
            return
        bits = descriptor[0]
        single_segment, checksum = bits & 32, bits & 4
        size_bytes = SIZE_BYTES[bits >> 6] or (1 if single_segment else 0)
        file.seek((0 if single_segment else 1) + DICTIONARY_BYTES[bits & 3] + size_bytes, 1)
        last = False
        while not last:
            header = int.from_bytes(head := file.read(3), "little")
            if len(head) < 3:
                return
            last, kind, length = bool(header & 1), header >> 1 & 3, header >> 3
            file.seek(1 if kind == REPEATED else length, 1)
            yield length if kind in (RAW, REPEATED) else LARGEST_BLOCK
        file.seek(4 if checksum else 0, 1)


def count_parquet_rows(path: Path, texts: Collection[str] | None = None) -> int:
    """Number of rows of a Parquet file, as its footer says; raises `InputError` if the file is far too small for them.

    The numbers of its footer and page headers are checked, too, and the size of its texts, so this comes before
    anything else is read.

    Args:
        path: The file; errors of polars are not caught.
        texts: Columns whose texts are to be checked; None = all.
    """
    if check_parquet(path) > allowed_bytes(path):
        check_prefixed_texts(path)
    rows = int(pl.scan_parquet(path, glob=False).select(pl.len()).collect().item())
    if rows > max(FREE_ROWS, MAX_ROWS_PER_BYTE * path.stat().st_size):
        raise InputError(f"{path}: refused, because it claims {rows:,} rows in {path.stat().st_size:,} bytes")
    if texts is None or texts:
        check_parquet_texts(path, texts)
    return rows
