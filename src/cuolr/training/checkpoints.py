"""Checkpoints of a run: one safetensors file with the tensors, and everything else as JSON in its header.

Loading a checkpoint executes no code from it.
"""

import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from cuolr.errors import InputError, check_format
from cuolr.files import atomic_file, content_hash, is_verifying

FORMAT = "cuolr-checkpoint-2"


def save_checkpoint(path: Path, state: Mapping[str, Any]) -> None:
    """Write nested dictionaries, lists and tuples of tensors, arrays, numbers and strings, atomically."""
    tensors: dict[str, Tensor] = {}
    structure = json.dumps(_take_apart(state, "", tensors))
    header = {"format": FORMAT, "structure": structure, "sha256": _digest(structure, tensors)}
    with atomic_file(path) as unfinished:
        unfinished.write_bytes(save(tensors, header))  # so that a full disk is an OSError


def load_checkpoint(path: Path) -> dict[str, Any]:
    """Read a checkpoint, with arrays as tensors; a damaged file raises `InputError`."""
    if not path.is_file():
        problem = "expected a checkpoint, found a folder" if path.exists() else "file not found"
        raise InputError(f"{path}: {problem}")
    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path}: damaged checkpoint: {error}; start the run again") from None
    check_format(header.get("format"), FORMAT, path, "a checkpoint")
    if is_verifying() and header.get("sha256") != _digest(header.get("structure", ""), tensors):
        raise InputError(f"{path}: damaged checkpoint: the content does not match its hash; start the run again")
    try:
        state = _put_together(json.loads(header["structure"]), tensors)
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise InputError(f"{path}: not a checkpoint ({type(error).__name__}: {error}); start the run again") from None
    if not isinstance(state, dict):
        raise InputError(f"{path}: not a checkpoint; start the run again")
    return state


def _take_apart(value: Any, name: str, tensors: dict[str, Tensor]) -> Any:
    """`value` as JSON values; its tensors are moved to `tensors`, keyed by their path."""
    if isinstance(value, np.ndarray):
        value = torch.from_numpy(np.ascontiguousarray(value))
    if isinstance(value, Tensor):
        assert name not in tensors, f"two values have the path {name}"
        tensors[name] = value.detach().cpu().clone(memory_format=torch.contiguous_format)
        return {"tensor": name}
    if isinstance(value, Mapping):
        # Stored as pairs, because keys may be numbers, as in an optimiser's state.
        return {"dict": [[key, _take_apart(item, f"{name}/{key}", tensors)] for key, item in value.items()]}
    if isinstance(value, list | tuple):
        items = [_take_apart(item, f"{name}/{i}", tensors) for i, item in enumerate(value)]
        return {type(value).__name__: items}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"a checkpoint cannot hold {type(value).__name__} at '{name}'")


def _put_together(value: Any, tensors: Mapping[str, Tensor]) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "tensor":
        return tensors[content]
    if kind == "dict":
        return {key: _put_together(item, tensors) for key, item in content}
    items = [_put_together(item, tensors) for item in content]
    return {"list": list, "tuple": tuple}[kind](items)


def _digest(structure: str, tensors: Mapping[str, Tensor]) -> str:
    parts = ((name, tensors[name].reshape(-1).view(torch.uint8).numpy()) for name in sorted(tensors))
    return content_hash(structure, *itertools.chain(*parts))
