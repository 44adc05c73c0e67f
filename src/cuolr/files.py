"""Files and folders that are either there and whole, or not there at all."""

import hashlib
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cuolr.errors import InputError

# The names of what is being written, or of what a kill has left of it.
UNFINISHED = ".*.unfinished"


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """A path beside `path` to write to; it takes the name `path` when the block ends well, and goes when it does not.

    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "answer.txt"
    >>> with atomic_file(target) as unfinished:
    ...     _ = unfinished.write_text("42")
    >>> target.read_text(), [file.name for file in target.parent.iterdir()]
    ('42', ['answer.txt'])
    """
    unfinished = _beside(path)
    try:
        yield unfinished
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: Path, overwrite: bool = False, ours: str | None = None) -> Iterator[Path]:
    """An empty folder beside `path` to fill; it takes the name `path` when the block ends well.

    Args:
        path: Where the folder is to be; its parents are made.
        overwrite: Whether a folder that is there already is replaced; otherwise it is an error, before any work.
        ours: See `refuse_existing`.
    """
    refuse_existing(path, overwrite, ours)
    path = Path(os.path.abspath(path))  # "." has no name to put another beside
    unfinished = _beside(path)
    unfinished.mkdir(parents=True)
    try:
        yield unfinished
        _put_in_place(unfinished, path, overwrite)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def refuse_existing(path: Path, overwrite: bool, ours: str | None = None) -> None:
    """Stop before any work where the result could not be put.

    Args:
        path: Where it is to be.
        overwrite: Whether what is there may be replaced.
        ours: A file that every folder of this kind has; one without it is somebody's and is never replaced.
    """
    if not path.exists():
        return
    if not overwrite:
        raise InputError(f"{path}: exists already; give another path, or --overwrite to replace it")
    if ours is not None and not (path / ours).is_file():
        raise InputError(f"{path}: has no {ours}, so it is not replaced; give another path, or remove it yourself")


def check_files(paths: Iterable[Path | None], overwrite: bool) -> None:
    """Stop before any work where one of several files could not be written, or two are the same.

    Args:
        paths: Where they are to be; None = not asked for.
        overwrite: Whether files that are there may be replaced.
    """
    files = [path for path in paths if path is not None]
    for number, file in enumerate(files):
        if file.resolve() in [other.resolve() for other in files[:number]]:
            raise InputError(f"{file}: expected a file of its own for each output, found the same one twice")
        refuse_existing(file, overwrite)
        if file.is_dir():
            raise InputError(f"{file}: expected the name of a file, found a folder")
        there = next(folder for folder in file.absolute().parents if folder.exists())
        if not there.is_dir():
            raise InputError(f"{file}: expected a folder to write it to, found the file {there}")


def check_suffix(path: Path, suffixes: Sequence[str]) -> None:
    """Refuse a name that does not say what the file is to be."""
    if path.suffix.lower() not in suffixes:
        raise InputError(f"{path}: expected a name that ends in {', '.join(suffixes)}, found '{path.suffix}'")


def _put_in_place(unfinished: Path, path: Path, overwrite: bool) -> None:
    """Give a folder its name; where that fails, what had the name before has it again."""
    replaced = _beside(path)
    if overwrite and path.exists():
        os.rename(path, replaced)
    try:
        os.rename(unfinished, path)
    except OSError:
        if replaced.exists():
            os.rename(replaced, path)
        raise
    shutil.rmtree(replaced, ignore_errors=True)


def _beside(path: Path) -> Path:
    return path.with_name(UNFINISHED.replace("*", f"{path.name}.{uuid.uuid4().hex[:12]}"))


def content_hash(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
