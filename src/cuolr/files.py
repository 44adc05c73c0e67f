"""Atomic writing of files and folders, content hashes, and versions recorded with results."""

import hashlib
import json
import os
import platform
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import numpy as np

import cuolr
from cuolr.errors import InputError, does_not_match, not_found
from cuolr.output_lock import hold, writing

# Packages that affect results.
DECIDING = ("torch", "numpy", "scipy", "scikit-learn", "lightgbm", "xgboost", "xgboost-cpu", "polars")
# Rows of an array and bytes of a file that are hashed at a time, to bound memory.
ROWS_AT_A_TIME, BYTES_AT_A_TIME = 1 << 16, 1 << 20

# How many blocks of `unverified` are open.
_hurried: list[None] = []
# Files that were compared with their hashes: name, identity, size and times, hash. A log is opened several times.
_verified: set[tuple[object, ...]] = set()


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """A temporary path beside `path` to write to; renamed to `path` if the block succeeds, removed if it fails.

    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "answer.txt"
    >>> with atomic_file(target) as unfinished:
    ...     _ = unfinished.write_text("42")
    >>> target.read_text(), [file.name for file in target.parent.iterdir()]
    ('42', ['answer.txt'])
    """
    with writing(path):
        unfinished = _beside(path)
        try:
            yield unfinished
            _flush(unfinished)
            os.replace(unfinished, path)
            _flush(path.parent)
        finally:
            unfinished.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: Path, overwrite: bool = False, ours: str | None = None) -> Iterator[Path]:
    """An empty temporary folder beside `path` to fill; renamed to `path` if the block succeeds, removed if it fails.

    Args:
        path: The folder to create; its parents are created, too.
        overwrite: Whether an existing folder is replaced; otherwise it is an error, before any work.
        ours: See `refuse_existing`.
    """
    path = Path(os.path.abspath(path))  # "." has no name to derive a temporary one from
    with writing(path):
        refuse_existing(path, overwrite, ours)
        unfinished = _beside(path)
        unfinished.mkdir()
        try:
            yield unfinished
            for written in (*unfinished.rglob("*"), unfinished):
                _flush(written)
            _put_in_place(unfinished, path, overwrite)
            _flush(path.parent)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)


def refuse_existing(path: Path, overwrite: bool, ours: str | None = None) -> None:
    """Raise, before any work, if the output path exists or another process writes it.

    Args:
        path: The output path.
        overwrite: Whether an existing output may be replaced.
        ours: A file that every output folder of this kind contains; a folder without it is never replaced.
    """
    hold(path)
    if not path.exists():
        return
    if not overwrite:
        raise InputError(
            f"{path}: already exists; choose another path, or replace it with --overwrite (overwrite=True in Python)"
        )
    if ours is not None and not (path / ours).is_file():
        raise InputError(f"{path}: has no {ours}, so it is not replaced; choose another path or remove it first")


def check_files(paths: Iterable[Path | None], overwrite: bool) -> None:
    """Raise, before any work, if an output file cannot be written, or if two are the same.

    Args:
        paths: The output paths; None = not requested.
        overwrite: Whether existing files may be replaced.
    """
    files = [path for path in paths if path is not None]
    for number, file in enumerate(files):
        if file.resolve() in [other.resolve() for other in files[:number]]:
            raise InputError(f"{file}: given for two outputs; choose a different file for each")
        if file.is_dir():
            raise InputError(f"{file}: is a folder; choose the name of a file")
        there = next(folder for folder in file.absolute().parents if folder.exists())
        if not there.is_dir():
            raise InputError(f"{file}: cannot be written, because {there} is a file, not a folder")
        refuse_existing(file, overwrite)


def check_suffix(path: Path, suffixes: Sequence[str]) -> None:
    """Raise if the suffix of a file is not one of `suffixes`."""
    if path.suffix.lower() not in suffixes:
        raise InputError(f"{path}: expected a name that ends in {', '.join(suffixes)}, found '{path.suffix}'")


def require_file(path: Path, most: int | None = None) -> None:
    """Raise if there is no such file, or if it has more than `most` bytes."""
    if not path.exists():
        raise not_found(path)
    if not path.is_file():
        raise InputError(f"{path}: expected a file, found a folder or a device")
    if most is not None and size_of(path) > most:
        raise InputError(f"{path}: expected at most {most:,} bytes, found {size_of(path):,}")


def size_of(path: Path) -> int:
    """Bytes of a file; 0 if there is none."""
    return path.stat().st_size if path.is_file() else 0


def _put_in_place(unfinished: Path, path: Path, overwrite: bool) -> None:
    """Rename a folder to `path`; on failure the previous folder is put back."""
    replaced = _beside(path, "replaced")
    if overwrite and path.exists():
        os.rename(path, replaced)
    try:
        os.rename(unfinished, path)
    except OSError:
        if replaced.exists():
            os.rename(replaced, path)
        raise
    shutil.rmtree(replaced, ignore_errors=True)


def _beside(path: Path, kind: Literal["unfinished", "replaced"] = "unfinished") -> Path:
    """A new name, which `output_lock` recognises if it is left over."""
    return path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}.{kind}")


def _flush(path: Path) -> None:
    """Have a file or a folder written to the disk itself, so that it survives a loss of power."""
    if os.name == "nt":  # where this needs a handle to write with, and a folder has none
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def content_hash(*parts: Any) -> str:
    """SHA-256 of all parts together, in hexadecimal digits.

    >>> content_hash({"b": 2, "a": (1,)}) == content_hash('{"a": [1], "b": 2}')
    True

    Args:
        parts: Bytes; a text; a path, for the content of the file; an array, for its shape, type and values; anything
            else as JSON, whatever the order of its keys.
    """
    digest = hashlib.sha256()
    for part in parts:
        for data in _bytes_of(part):
            digest.update(data)
    return digest.hexdigest()


@contextmanager
def unverified() -> Iterator[None]:
    """Within the block, logs, models, checkpoints and results are not compared with their hashes; all threads."""
    _hurried.append(None)
    try:
        yield
    finally:
        _hurried.pop()


def is_verifying() -> bool:
    """Whether what is read is to be compared with its hash."""
    return not _hurried


def check_hash(path: Path, digest: object, progress: Callable[[int], None] = lambda _: None) -> None:
    """Raise if a file does not have this hash; one that this process has compared before is not read again.

    Args:
        path: The file.
        digest: Its hash, as recorded by whoever wrote it.
        progress: Called with the bytes that were compared since the last call.
    """
    if not is_verifying():
        return
    state = path.stat()
    known = (path, state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns, digest)
    if known in _verified:
        progress(state.st_size)
        return
    found = hashlib.sha256()
    for data in _bytes_of(path):
        found.update(data)
        progress(len(data))
    if found.hexdigest() != digest:
        raise does_not_match(path)
    _verified.add(known)


def part_of(folder: Path, name: str) -> Path:
    """The path of a file of a folder; raises if its name or a symbolic link leads out of it, or to a pipe or a device.

    >>> part_of(Path("LOG"), "../secret.json")
    Traceback (most recent call last):
        ...
    cuolr.errors.InputError: LOG: '../secret.json' leads out of the folder; expected the file itself in it
    """
    try:
        is_inside = Path(os.path.realpath(folder / name)).is_relative_to(os.path.realpath(folder))
    except ValueError:  # a null character
        is_inside = False
    if not is_inside:
        raise InputError(f"{folder}: {name!r} leads out of the folder; expected the file itself in it")
    if (folder / name).exists() and not ((folder / name).is_file() or (folder / name).is_dir()):
        raise InputError(f"{folder / name}: expected a file, found a pipe or a device")
    return folder / name


def versions() -> dict[str, str]:
    """What results depend on: the versions of cuolr, other packages and Python, and the type of machine."""
    return {
        "cuolr": cuolr.__version__,
        **{name: version for name in DECIDING if (version := _version(name)) is not None},
        "python": platform.python_version(),
        "machine": platform.machine(),
    }


def _bytes_of(part: Any) -> Iterator[Any]:
    if isinstance(part, Path):
        with part.open("rb") as file:
            while data := file.read(BYTES_AT_A_TIME):
                yield data
    elif isinstance(part, np.ndarray):
        yield str((part.shape, part.dtype.str)).encode()
        for start in range(0, len(part), ROWS_AT_A_TIME):
            yield np.ascontiguousarray(part[start : start + ROWS_AT_A_TIME]).data
    elif isinstance(part, bytes | memoryview):
        yield part
    elif isinstance(part, str):
        yield part.encode()
    else:
        # Read back once, so that tuples become lists and all keys strings.
        yield json.dumps(json.loads(json.dumps(part)), sort_keys=True).encode()


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
