"""A temporary folder that is removed with its process, even if the process is killed."""

import os
import shutil
import tempfile
import time
from pathlib import Path
from types import ModuleType
from typing import Self

fcntl: ModuleType | None
try:
    import fcntl
except ModuleNotFoundError:  # not a POSIX system
    fcntl = None

PREFIX = "cuolr-"
# Locked while the folder's process is alive.
LOCK = ".in-use"
# Without locks, a folder counts as in use for this long.
SECONDS_WITHOUT_LOCKS = 24 * 3600


class Scratch:
    """An empty temporary folder that exists until it is closed. Also removes folders left by killed processes."""

    def __init__(self) -> None:
        _remove_abandoned()
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        if fcntl is None:
            self._lock = (self.path / LOCK).open("wb")
            return
        # The file is renamed after it is locked, so that the folder is never mistaken for an abandoned one.
        unlocked = self.path / f"{LOCK}.new"
        self._lock = unlocked.open("wb")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        os.rename(unlocked, self.path / LOCK)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the folder."""
        if fcntl is None:
            self._lock.close()  # Windows does not delete an open file
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()


def _remove_abandoned() -> None:
    for lock in Path(tempfile.gettempdir()).glob(f"{PREFIX}*/{LOCK}"):
        try:
            if fcntl is None:
                if time.time() - lock.stat().st_mtime > SECONDS_WITHOUT_LOCKS:
                    lock.unlink()  # Windows refuses while its process has it open
                    shutil.rmtree(lock.parent, ignore_errors=True)
                continue
            with lock.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(lock.parent, ignore_errors=True)
        except OSError:  # in use, owned by another user, or just removed
            continue
