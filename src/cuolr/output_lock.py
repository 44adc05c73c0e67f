"""One writer per output, and what writers that were killed left behind.

A process that writes `LOG` holds a lock on `.LOG.lock.unfinished` beside it. The system releases the lock when the
process ends in any way, so the lock knows neither a process id that was given to another process nor a clock, and it
holds over several machines if the file system passes locks on. Who holds it may remove what is left of the output:

    .LOG.0123456789ab.unfinished   half-written by a process that was killed
    .LOG.0123456789ab.replaced     an earlier output that was being replaced; put back if the new one is not there
"""

import errno
import os
import platform
import re
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Literal

from cuolr.errors import InputError

fcntl: ModuleType | None
try:
    import fcntl
except ModuleNotFoundError:  # not a POSIX system
    fcntl = None

# The names of files that are being written or locked, or that a killed process left.
UNFINISHED = ".*.unfinished"
LEFTOVER = re.compile(r"\.(?P<target>.+)\.(?:[0-9a-f]{12}\.(?P<kind>unfinished|replaced)|lock\.unfinished)")

_guard = threading.Lock()
# The outputs that this process holds, with the number of blocks that do.
_held: dict[Path, int] = {}
# Keeps outputs until the end of a command.
_until_the_end: list[ExitStack] = []


class BusyError(InputError):
    """Another process writes the same output."""


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Hold an output until the end of the block; what killed processes left of it is removed or put back.

    Raises:
        BusyError: If another process holds it.
    """
    path = Path(os.path.abspath(path))
    with _guard:
        _held[path] = _held.get(path, 0) + 1
        first = _held[path] == 1
    try:
        with _locked(path) if first else ExitStack():
            yield
    finally:
        with _guard:
            _held[path] -= 1
            if not _held[path]:
                del _held[path]


@contextmanager
def outputs_held() -> Iterator[None]:
    """Within the block, `hold` keeps outputs until its end: for a command that checks first and writes last."""
    with ExitStack() as stack:
        _until_the_end.append(stack)
        try:
            yield
        finally:
            _until_the_end.pop()


def hold(path: Path) -> None:
    """Hold an output until the end of the command; in Python, where nobody says when that is, do nothing."""
    if _until_the_end:
        _until_the_end[-1].enter_context(writing(path))


@dataclass(frozen=True)
class Leftover:
    """What was found of an output that was not finished.

    Attributes:
        path: Its path.
        outcome: Removed; put back, if it is the earlier output; or kept, because its process is writing.
    """

    path: Path
    outcome: Literal["removed", "put back", "in use"]


def clean(folder: Path) -> list[Leftover]:
    """Remove what killed processes left in a folder and below, or put it back; symbolic links are not followed."""
    leftovers = []
    for place, folders, names in os.walk(folder):
        found = {name: match for name in sorted({*folders, *names}) if (match := LEFTOVER.fullmatch(name))}
        folders[:] = [name for name in folders if name not in found]
        for name, match in found.items():
            path, target = Path(place) / name, Path(place) / match["target"]
            is_lost = match["kind"] == "replaced" and not target.exists()
            if path.is_symlink() and match["kind"] is None:  # no lock, but put there by somebody
                path.unlink()
                leftovers.append(Leftover(path, "removed"))
                continue
            try:
                with writing(target):
                    pass
                leftovers.append(Leftover(path, "put back" if is_lost else "removed"))
            except BusyError:
                leftovers.append(Leftover(path, "in use"))
    return leftovers


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    created = _make_parents(path.parent)
    lock = path.with_name(f".{path.name}.lock.unfinished")
    try:
        handle, is_locked = _acquire(lock, path)
        try:
            if is_locked:
                _recover(path)
            yield
        finally:
            _release(handle, lock)
    finally:
        for folder in reversed(created):
            with suppress(OSError):  # not empty: the output is there
                folder.rmdir()


def _make_parents(folder: Path) -> list[Path]:
    """Create a folder; returns those that were not there, from above."""
    missing = [parent for parent in (folder, *folder.parents) if not parent.exists()][::-1]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder)) from None
    return missing


def _acquire(lock: Path, path: Path) -> tuple[int, bool]:
    """The handle of the locked file, and whether the file system knows locks."""
    while True:
        if lock.is_symlink():
            raise InputError(
                f"{lock}: is a link, to which nothing is written; remove it with: cuolr clean {path.parent}"
            )
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0))
        try:
            is_locked = lock_open_file(handle)
        except BlockingIOError:
            owner = os.read(handle, 200).decode(errors="replace")
            os.close(handle)
            raise BusyError(
                f"{path}: another process is writing it ({owner or 'unknown'}); wait for it, or choose another path"
            ) from None
        # Who held it before may have removed the file after it was opened here.
        if lock.exists() and os.path.samestat(os.fstat(handle), lock.stat()):
            with suppress(OSError):  # what it says is for people only
                os.ftruncate(handle, 0)
                os.write(handle, f"process {os.getpid()} on {platform.node()}".encode())
            return handle, is_locked
        os.close(handle)


def lock_open_file(handle: int) -> bool:
    """Lock an open file, or raise `BlockingIOError`; False if the file system cannot."""
    if sys.platform == "win32":  # pragma: no cover
        import msvcrt

        try:
            # A byte behind the text, which others may read.
            os.lseek(handle, 1 << 20, os.SEEK_SET)
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
            os.lseek(handle, 0, os.SEEK_SET)
        except OSError:
            os.lseek(handle, 0, os.SEEK_SET)
            raise BlockingIOError from None
        return True
    if fcntl is None:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        return False
    return True


def _release(handle: int, lock: Path) -> None:
    if os.name == "nt":  # which does not delete an open file
        os.close(handle)
        with suppress(OSError):
            lock.unlink()
        return
    with suppress(OSError):
        lock.unlink()
    os.close(handle)


def _recover(path: Path) -> None:
    """Remove what is left of an output, and put an earlier one back if there is no new one."""
    for entry in sorted(path.parent.glob(".*")):
        match = LEFTOVER.fullmatch(entry.name)
        if match is None or match["target"] != path.name or match["kind"] is None:
            continue
        with suppress(OSError):  # another user's
            if match["kind"] == "replaced" and not path.exists():
                os.rename(entry, path)
            elif entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()
