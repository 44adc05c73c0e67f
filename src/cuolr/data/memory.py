"""Memory given back to the system that is free or can be read again, so that stages of training do not add up."""

import ctypes
import mmap
from typing import Any

import numpy.typing as npt


def give_back_freed() -> None:
    """Give back what was freed: the heap of glibc keeps most of it, in pieces. Other C libraries are left alone."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return
    trim(0)


def give_back_pages(array: npt.NDArray[Any]) -> None:
    """Give back the pages of a memory-mapped file; they are read again when needed. Other arrays are left alone."""
    mapped = getattr(array, "_mmap", None)
    # Of a map that can be written to, changes would be lost.
    read_only = getattr(array, "mode", None) == "r"
    if read_only and isinstance(mapped, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)
