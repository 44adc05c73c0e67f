"""NumPy's .npy files, whose headers are checked before memory is allocated: a damaged one may claim terabytes."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cuolr.errors import InputError, unreadable

# Texts that are checked at a time, to bound memory.
TEXTS_AT_A_TIME = 1 << 16
# Half of a pair of UTF-16 is no character, and nothing is above the last one.
SURROGATES, LAST_CHARACTER = (0xD800, 0xDFFF), 0x10FFFF


def read_array(
    file: Path, expected: str, ndim: int, kind: str, size: int | None = None, mapped: bool = False
) -> npt.NDArray[Any]:
    """An array of that shape and type.

    Args:
        file: A file that `numpy.save` wrote.
        expected: What it should hold, for messages.
        ndim: The number of its axes.
        kind: The kind of its values, as NumPy abbreviates it: `f`, `i` or `U`.
        size: Bytes of a value; None = any.
        mapped: Whether to map the file into memory instead of reading it.

    Raises:
        InputError: If it is another array, or damaged.
    """
    try:
        shape, dtype, start = _header(file)
    except OSError as error:
        raise unreadable(file, error) from None
    except Exception as error:  # NumPy evaluates the header as Python, and whatever may go wrong there
        reason = str(error).partition("\n")[0]
        raise InputError(f"{file}: expected {expected}, found a damaged .npy file ({reason})") from None
    if len(shape) != ndim or dtype.kind != kind or not dtype.isnative or size not in (None, dtype.itemsize):
        raise InputError(f"{file}: expected {expected}, found {dtype} {list(shape)}")
    claimed, whole = math.prod(shape) * dtype.itemsize, file.stat().st_size
    found = whole - start
    if claimed != found or not dtype.itemsize or not all(0 <= length <= whole for length in shape):
        raise InputError(
            f"{file}: expected {expected}, found a damaged .npy file: {found:,} bytes for an array {list(shape)}"
        )
    array: npt.NDArray[Any] = np.load(file, mmap_mode="r" if mapped and found else None, allow_pickle=False)
    if kind == "U" and not _are_texts(array):
        raise InputError(f"{file}: expected {expected}, found values that are no characters")
    return array


def _header(file: Path) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    """The shape and the type, and where the values begin."""
    with file.open("rb") as opened:
        version = np.lib.format.read_magic(opened)
        if version != (1, 0):
            raise ValueError(f"version {version[0]}.{version[1]}")
        shape, _, dtype = np.lib.format.read_array_header_1_0(opened)
        return shape, dtype, opened.tell()


def _are_texts(array: npt.NDArray[Any]) -> bool:
    """Whether all values are Unicode texts."""
    for start in range(0, len(array), TEXTS_AT_A_TIME):
        characters = np.ascontiguousarray(array[start : start + TEXTS_AT_A_TIME]).view(np.uint32)
        low, high = SURROGATES
        if (characters > LAST_CHARACTER).any() or ((characters >= low) & (characters <= high)).any():
            return False
    return True
