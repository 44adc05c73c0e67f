"""Limits of the cache: entries that were not used for long are forgotten, and the oldest if there is too much."""

import os
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cuolr.output_lock import BusyError, writing

# The file of an entry whose modification time is that of its last use, to a day.
LAST_USE = "content.json"
DAY = 24 * 3600


@dataclass(frozen=True)
class CacheLimits:
    """What a cache may keep.

    Attributes:
        days: Entries that were not used for so many days are removed.
        gigabytes: Above this size in all, those are removed whose last use is longest ago.
    """

    days: float = 90.0
    gigabytes: float = 50.0


LIMITS = CacheLimits()


def mark_used(entry: Path) -> None:
    """Record that an entry is in use today."""
    with suppress(OSError):  # a cache that others own
        file = entry / LAST_USE
        if time.time() - file.stat().st_mtime > DAY:
            os.utime(file)


def forget_entries(folder: Path, kept: str, limits: CacheLimits = LIMITS) -> None:
    """Remove entries beyond the limits, and pointers to entries that are no more.

    Args:
        folder: The cache.
        kept: The name of the entry that was just written, which stays.
        limits: What the cache may keep.
    """
    entries = sorted((folder / "content").glob("[!.]*"), key=_last_use, reverse=True)
    total, oldest = 0, time.time() - limits.days * DAY
    for entry in entries:
        total += sum(file.stat().st_size for file in entry.glob("*") if file.is_file())
        if entry.name != kept and (_last_use(entry) < oldest or total > limits.gigabytes * 1e9):
            # Who has it mapped into memory keeps it; who is about to read it parses its file again.
            with suppress(OSError, BusyError), writing(entry):
                shutil.rmtree(entry, ignore_errors=True)
    for pointer in (folder / "path").glob("*.json"):
        with suppress(OSError):
            if pointer.stat().st_mtime < oldest:
                pointer.unlink()


def _last_use(entry: Path) -> float:
    try:
        return (entry / LAST_USE).stat().st_mtime
    except OSError:  # not an entry
        return 0.0
