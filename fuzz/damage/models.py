"""Crafted models: other arrays or settings under a hash that was made anew, which only a stranger would do."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load, save

from cuolr.files import content_hash
from cuolr.policies.model_folder import ARRAYS_PATTERN, SETTINGS_FILE
from fuzz.cases import Choices
from fuzz.damage.arrays import change_array, change_safetensors_header
from fuzz.damage.trees_of_values import change_json


def craft_model(folder: Path, choices: Choices) -> None:
    """Change the model in a folder, and make its hash anew."""
    (file,) = folder.glob(ARRAYS_PATTERN)
    description, arrays = (folder / SETTINGS_FILE).read_bytes(), file.read_bytes()
    for _ in range(1 + choices.below(3)):
        match choices.below(6):
            case 0:
                arrays = change_safetensors_header(arrays, choices)
            case 1 | 2:
                description = change_json(description, choices)
            case _:
                arrays = _change_arrays(arrays, choices)
    _write(folder, description, arrays)


def craft_trees(folder: Path, choices: Choices) -> None:
    """Change some numbers of the trees of a model, and make its hash anew."""
    (file,) = folder.glob(ARRAYS_PATTERN)
    arrays = file.read_bytes()
    for _ in range(1 + choices.below(4)):
        arrays = _change_arrays(arrays, choices, prefix="trees.")
    _write(folder, (folder / SETTINGS_FILE).read_bytes(), arrays)


def _change_arrays(content: bytes, choices: Choices, prefix: str = "") -> bytes:
    try:
        arrays: dict[str, npt.NDArray[Any]] = load(content)
    except Exception:  # damaged before
        return content
    names = [name for name in sorted(arrays) if prefix in name]
    if not names:
        return content
    name, action = choices.one_of(names), choices.below(12)
    if action == 0:
        del arrays[name]
    elif action == 1:
        arrays[name] = arrays[choices.one_of(names)]
    else:
        arrays[name] = change_array(arrays[name], choices)
    return save({name: np.ascontiguousarray(array) for name, array in arrays.items()})


def _write(folder: Path, text: bytes, arrays: bytes) -> None:
    """Write a model with the hash that belongs to it, if its description can have one."""
    for file in folder.glob(ARRAYS_PATTERN):
        file.unlink()
    digest = "0" * 64
    try:
        description = json.loads(text)
        description.pop("sha256", None)
        digest = content_hash(description, arrays)
        # The values as they were written: 1e999 must not become Infinity.
        text = text.rstrip()[:-1] + f', "sha256": "{digest}"}}'.encode()
    except (ValueError, RecursionError, AttributeError, TypeError):
        pass
    (folder / SETTINGS_FILE).write_bytes(text)
    (folder / ARRAYS_PATTERN.replace("*", digest[:16])).write_bytes(arrays)
