"""Files and folders that are either there and whole, or not there at all."""

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cuolr.errors import InputError


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
def atomic_folder(path: Path, overwrite: bool = False) -> Iterator[Path]:
    """An empty folder beside `path` to fill; it takes the name `path` when the block ends well.

    Args:
        path: Where the folder is to be; its parents are made.
        overwrite: Whether a folder that is there already is replaced; otherwise it is an error, before any work.
    """
    refuse_existing(path, overwrite)
    unfinished = _beside(path)
    unfinished.mkdir(parents=True)
    try:
        yield unfinished
        if path.exists() and overwrite:
            replaced = _beside(path)
            os.rename(path, replaced)
            os.rename(unfinished, path)
            shutil.rmtree(replaced)
        else:
            os.rename(unfinished, path)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def refuse_existing(path: Path, overwrite: bool) -> None:
    """Stop before any work where the result could not be put."""
    if path.exists() and not overwrite:
        raise InputError(f"{path}: exists already; give another path, or --overwrite to replace it")


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}.unfinished")
