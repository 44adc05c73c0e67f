"""Gzip of unknown origin: a file of a megabyte may hold a gigabyte of zeros."""

import gzip
import io
from pathlib import Path
from typing import IO

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
