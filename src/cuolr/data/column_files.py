"""What files of columns, Parquet and Feather, claim to hold: their footers, and the limits of what is believed."""

import mmap
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from cuolr.errors import InputError

T = TypeVar("T")

# A log of 20 million sessions has one row per byte; thousands per byte are no data. So many are read of any file.
MAX_ROWS_PER_BYTE, FREE_ROWS = 1_000, 1 << 24
# What compressed pages and buffers hold, at most: so many times their size, beyond 64 MB.
MAX_EXPANSION, FREE_BYTES = 300, 64 << 20
# Columns within columns; polars goes down by recursion, and ends the process where its stack does.
MAX_NESTED_COLUMNS = 100

LENGTH_BYTES = 4  # of the footer; then comes the magic number


class DamagedError(Exception):
    """A number that cannot be true, or bytes that are not in the format."""


def check_footer(path: Path, magic: bytes, check: Callable[[mmap.mmap, int], T]) -> T | None:
    """What a check finds out about a file, which begins and ends with a magic number; None = it does not end so.

    Args:
        path: The file. One that is not in the format at all is left to its reader, who says so.
        magic: The magic number.
        check: Called with the content and the place of the footer; raises `DamagedError`.

    Raises:
        InputError: If the file is damaged.
    """
    with path.open("rb") as file:
        size, tail = file.seek(0, 2), LENGTH_BYTES + len(magic)
        if size < len(magic) + tail:
            return None
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            start = size - tail - int.from_bytes(content[-tail : -len(magic)], "little", signed=True)
            if content[-len(magic) :] != magic or not len(magic) <= start <= size - tail:
                return None
            try:
                return check(content, start)
            except DamagedError as error:
                raise InputError(f"{path}: cannot be read: damaged: {error}") from None
            except IndexError:  # something ends after the file does
                raise InputError(f"{path}: cannot be read: damaged: it ends too early") from None


def counted(number: int) -> int:
    """A number of something, which cannot be negative."""
    if number < 0:
        raise DamagedError(f"it claims {number:,} where a number of something is expected")
    return number


def at_most(claimed: int, possible: int, what: str) -> None:
    """Raise if more is claimed than is possible."""
    if claimed > possible:
        raise DamagedError(f"it claims {claimed:,} {what}, and {possible:,} are possible")
