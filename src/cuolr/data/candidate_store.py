"""Candidates as memory-mapped arrays in a folder: features and ids, without labels.

features.npy          [n_documents, F] in float32, the documents of a query in consecutive rows; NaN = missing
offsets.npy           [n_queries + 1] where the rows of each query begin
query_ids.npy         [n_queries] texts
document_ids.npy      [n_documents] texts, if the source has them
feature_names.npy     [F] texts, if the source has them
feature_recipe.json   how the features were made from the columns of tables
"""

import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cuolr.data.memory import give_back_pages
from cuolr.errors import InputError, problems_in, unreadable
from cuolr.json_files import read_json
from cuolr.types import Candidates, FeatureRecipe, Strings

FEATURES, OFFSETS, QUERY_IDS, DOCUMENT_IDS = "features.npy", "offsets.npy", "query_ids.npy", "document_ids.npy"
FEATURE_NAMES = "feature_names.npy"
RECIPE = "feature_recipe.json"

# Rows that are compared at a time, to bound memory.
ROWS_AT_A_TIME = 65_536
# Texts that are checked at a time, to bound memory.
TEXTS_AT_A_TIME = 1 << 16
# Half of a pair of UTF-16 is no character, and nothing is above the last one.
SURROGATES, LAST_CHARACTER = (0xD800, 0xDFFF), 0x10FFFF


def save_candidates(candidates: Candidates, folder: Path) -> None:
    """Write candidates into an existing folder.

    Features are hard-linked if they are a memory map of a whole file, and copied otherwise. Folders are never linked,
    because they may contain labels.
    """
    _link_or_copy(np.asanyarray(candidates.features), folder / FEATURES)
    np.save(folder / OFFSETS, candidates.offsets, allow_pickle=False)
    np.save(folder / QUERY_IDS, candidates.query_ids, allow_pickle=False)
    if candidates.document_ids is not None:
        np.save(folder / DOCUMENT_IDS, candidates.document_ids, allow_pickle=False)
    if candidates.feature_names is not None:
        np.save(folder / FEATURE_NAMES, candidates.feature_names, allow_pickle=False)
    if candidates.recipe is not None:
        recipe = json.dumps(candidates.recipe.to_dict(), indent=2)
        (folder / RECIPE).write_text(recipe + "\n", encoding="utf-8")


def load_candidates(folder: Path) -> Candidates:
    """Read what `save_candidates` wrote; features and document ids are memory-mapped."""
    features = read_array(
        folder / FEATURES, "features [n_documents, F] in float32", ndim=2, kind="f", size=4, mapped=True
    )
    offsets = read_array(folder / OFFSETS, "offsets [n_queries + 1] in int64", ndim=1, kind="i", size=8)
    query_ids = read_array(folder / QUERY_IDS, "texts [n_queries]", ndim=1, kind="U")
    if len(offsets) != len(query_ids) + 1:
        raise InputError(f"{folder / OFFSETS}: expected {len(query_ids) + 1} offsets, found {len(offsets)}")
    if offsets[0] != 0 or offsets[-1] != len(features) or (np.diff(offsets) < 0).any():
        raise InputError(f"{folder / OFFSETS}: damaged: expected offsets that rise from 0 to {len(features)}")
    document_ids = _load_texts(folder / DOCUMENT_IDS, len(features))
    feature_names = _load_texts(folder / FEATURE_NAMES, features.shape[1])
    return Candidates(features, offsets, query_ids, document_ids, feature_names, load_recipe(folder))


def folder_of(candidates: Candidates) -> Path | None:
    """The folder that candidates were read from; None if their features are not its whole file, mapped into memory."""
    file = _file_of(candidates.features)
    give_back_pages(candidates.features)
    return None if file is None or file.name != FEATURES else file.parent


def load_recipe(folder: Path) -> FeatureRecipe | None:
    """How the features were made; None if the source was no table with columns."""
    file = folder / RECIPE
    if not file.exists():
        return None
    recipe = read_json(file)
    with problems_in(f"{file}: damaged: expected the recipe of the features"):
        if not isinstance(recipe, dict):
            raise InputError(f"found a {type(recipe).__name__}")
        return FeatureRecipe.from_dict(recipe)


def _load_texts(file: Path, n_texts: int) -> Strings | None:
    """Strings that exist only if the source had them."""
    if not file.exists():
        return None
    texts: Strings = read_array(file, f"{n_texts} texts", ndim=1, kind="U", mapped=True)
    if len(texts) != n_texts:
        raise InputError(f"{file}: expected {n_texts} texts, found {len(texts)}")
    return texts


def _link_or_copy(features: npt.NDArray[Any], target: Path) -> None:
    source = _file_of(features)
    if source is not None:
        try:
            os.link(source, target)
            return
        except OSError:  # another file system, or one without hard links
            pass
    np.save(target, features, allow_pickle=False)


def _file_of(array: npt.NDArray[Any]) -> Path | None:
    """The .npy file that this array is a memory map of, if it is the whole file.

    The content is compared, because the map may cover only a part of the file, or the file may have been replaced.
    """
    if not isinstance(array, np.memmap) or array.filename is None or array.flags.writeable:
        return None
    file = Path(array.filename).resolve()
    try:
        whole = np.load(file, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    alike = whole.dtype == array.dtype and whole.shape == array.shape and whole.flags.c_contiguous
    if not alike or file.stat().st_size != whole.offset + whole.nbytes:
        return None
    starts = range(0, len(array), ROWS_AT_A_TIME)
    same = (
        np.array_equal(array[i : i + ROWS_AT_A_TIME], whole[i : i + ROWS_AT_A_TIME], equal_nan=True) for i in starts
    )
    return file if all(same) else None


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
    except Exception:  # NumPy evaluates the header as Python, and whatever may go wrong there
        raise InputError(f"{file}: expected {expected}, found a damaged .npy file, or one of another version") from None
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
        if np.lib.format.read_magic(opened) != (1, 0):
            raise ValueError("of another version")
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
