"""A folder for what goes when the process goes, also where it was killed."""

import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import Self

PREFIX = "cuolr-"
# Locked for as long as the process lives that the folder belongs to.
LOCK = ".in-use"


class Scratch:
    """An empty folder among the temporary files, until it is closed. What killed processes have left there goes."""

    def __init__(self) -> None:
        _remove_left_behind()
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        # It has its name when it is locked, so that nobody takes it for one that was left.
        unlocked = self.path / f"{LOCK}.new"
        self._lock = unlocked.open("wb")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        os.rename(unlocked, self.path / LOCK)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove it."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()


def _remove_left_behind() -> None:
    for lock in Path(tempfile.gettempdir()).glob(f"{PREFIX}*/{LOCK}"):
        try:
            with lock.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(lock.parent, ignore_errors=True)
        except OSError:  # of a process that lives, or of another user, or just removed
            continue
