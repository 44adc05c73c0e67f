"""Parsed files as memory-mapped arrays, so that a data set is parsed once.

The cache folder is `$CUOLR_CACHE`, else `$XDG_CACHE_HOME/cuolr`, else `~/.cache/cuolr`; it can be deleted at any time.

    content/<key>/    the arrays of one file; `key` is a hash of its content, the reader's version and the options
    path/<key>.json   the content of a path when last read, with its size and modification time

If the size, modification time and reader's version of a path are unchanged, the cache is used without reading the
file. Otherwise the content is hashed, and parsed only if it is new. Arrays that were touched after they were written
are compared with their checksums, and parsed again if they differ. Entries are written atomically, and forgotten 90
days after their last use, or if the cache exceeds 50 GB, those first whose last use is longest ago.
"""

import json
import os
import shutil
import time
import warnings
import zlib
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cuolr.data.letor.grouping import group_file
from cuolr.data.letor.reader import READER_VERSION, LetorFile, LetorOptions, read_file
from cuolr.errors import InputWarning, unreadable
from cuolr.files import atomic_file, atomic_folder, content_hash
from cuolr.output_lock import BusyError, writing
from cuolr.progress import Progress
from cuolr.types import Candidates

_ARRAYS = ("features", "offsets", "query_ids", "document_ids", "relevance")
# The file of an entry whose modification time is that of its last use, to a day.
LAST_USE = "content.json"
DAY = 24 * 3600


class _DamagedError(Exception):
    """An entry of the cache cannot be used."""


def default_folder() -> Path:
    """The cache folder; see the module's docstring."""
    if folder := os.environ.get("CUOLR_CACHE"):
        return Path(folder)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cuolr"


@dataclass(frozen=True)
class Cache:
    """A cache folder.

    Attributes:
        folder: Its path; created when first needed.
        verify: Whether to compare the content of files and arrays with their hashes even if size and modification time
            are unchanged.
    """

    folder: Path
    verify: bool = False

    def read(self, path: Path, options: LetorOptions = LetorOptions(), progress: Progress | None = None) -> LetorFile:
        """Read a file as `read_file` does, from the cache if possible; a parsed file is added to the cache."""
        try:
            status = path.stat()
        except OSError as error:
            raise unreadable(path, error) from None
        groups = group_file(path)
        now = {
            "path": str(path.resolve()),
            "size": status.st_size,
            "modified": status.st_mtime_ns,
            "group_modified": groups.stat().st_mtime_ns if groups.exists() else None,
            "reader": READER_VERSION,
            "options": asdict(options),
        }
        pointer = self.folder / "path" / f"{_name_for(now['path'], now['options'])}.json"
        file = self._unchanged(pointer, now)
        if file is None:
            hashes = [content_hash(source) for source in (path, groups) if source.exists()]
            content = _name_for(hashes, READER_VERSION, asdict(options))
            file = self._load(content)
            if file is None:
                parsed = self._store(content, read_file(path, options, progress))
                self._point(pointer, {**now, "content": content})
                return parsed
            self._point(pointer, {**now, "content": content})
        if progress is not None:
            progress(status.st_size)
        file.warn(path)
        return file

    def _unchanged(self, pointer: Path, now: dict[str, Any]) -> LetorFile | None:
        """The arrays of a file whose size, modification time, reader and options are unchanged."""
        known = _read_json(pointer)
        if self.verify or known is None or {**known, "content": None} != {**now, "content": None}:
            return None
        return self._load(known["content"])

    def _load(self, content: str) -> LetorFile | None:
        folder = self.folder / "content" / content
        description = _read_json(folder / LAST_USE)
        if description is None:
            return None
        mark_used(folder)
        try:
            arrays = {name: _open_array(folder, name, description["arrays"][name], self.verify) for name in _ARRAYS}
            return _as_file(arrays, bool(description["dense"]), description["note"])
        except (_DamagedError, OSError, ValueError, KeyError, TypeError):
            return None

    def _store(self, content: str, file: LetorFile) -> LetorFile:
        """Add a parsed file to the cache and return it memory-mapped; if that fails, as it is."""
        try:
            with atomic_folder(self.folder / "content" / content, overwrite=True) as folder:
                arrays = {name: _write_array(folder, name, value) for name, value in _arrays_of(file).items()}
                description = {"dense": file.dense, "note": file.note, "arrays": arrays}
                (folder / LAST_USE).write_text(json.dumps(description), encoding="utf-8")
        except BusyError:  # another process parsed the same file
            return file
        except OSError as error:
            warnings.warn(
                f"{self.folder}: cannot be written ({error.strerror}); not cached", InputWarning, stacklevel=3
            )
            return file
        forget_entries(self.folder, content)
        return self._load(content) or file

    def _point(self, pointer: Path, known: dict[str, Any]) -> None:
        try:
            pointer.parent.mkdir(parents=True, exist_ok=True)
            with atomic_file(pointer) as unfinished:
                unfinished.write_text(json.dumps(known), encoding="utf-8")
        except (OSError, BusyError):
            return


def _arrays_of(file: LetorFile) -> dict[str, Any]:
    candidates = file.candidates
    return {
        "features": candidates.features,
        "offsets": candidates.offsets,
        "query_ids": candidates.query_ids,
        "document_ids": candidates.document_ids,
        "relevance": file.relevance,
    }


def _as_file(arrays: dict[str, Any], dense: bool, note: str | None) -> LetorFile:
    candidates = Candidates(arrays["features"], arrays["offsets"], arrays["query_ids"], arrays["document_ids"])
    return LetorFile(candidates, arrays["relevance"], dense, note)


def _write_array(folder: Path, name: str, array: Any) -> dict[str, Any] | None:
    """Write one array and describe its file, to detect changes; None = there is no such array."""
    if array is None:
        return None
    path = folder / f"{name}.npy"
    np.save(path, array, allow_pickle=False)
    status = path.stat()
    return {"size": status.st_size, "modified": status.st_mtime_ns, "checksum": _checksum(path)}


def _open_array(folder: Path, name: str, expected: dict[str, Any] | None, verify: bool) -> Any:
    if expected is None:
        return None
    path = folder / f"{name}.npy"
    status = path.stat()
    touched = status.st_mtime_ns != expected["modified"]
    if status.st_size != expected["size"] or ((touched or verify) and _checksum(path) != expected["checksum"]):
        raise _DamagedError
    return np.load(path, mmap_mode="r", allow_pickle=False)


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _checksum(path: Path) -> int:
    """CRC-32 of a file: fast, and enough against accidental changes."""
    checksum = 0
    with path.open("rb") as file:
        while data := file.read(1 << 20):
            checksum = zlib.crc32(data, checksum)
    return checksum


def _name_for(*parts: Any) -> str:
    return content_hash(parts)[:32]


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
