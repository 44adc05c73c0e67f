"""Saved policies: a folder with the arrays (safetensors) and all else (JSON). Loading one runs no code from it.

model.json                     settings, provenance, and a hash over these and the arrays
model-<hash>.safetensors       the arrays that belong to it; others of such a name are what a crash left
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

import cuolr
from cuolr.errors import InputError, problems_in
from cuolr.files import atomic_file, atomic_folder, content_hash
from cuolr.policies.policy import POLICIES, RankingPolicy

SETTINGS_FILE = "model.json"
ARRAYS_PATTERN = "model-*.safetensors"
FORMAT = "cuolr-policy-3"
# What goes wrong when a policy is made of parts that are whole, but that no policy could have saved.
NO_POLICY = (ArithmeticError, AttributeError, LookupError, RuntimeError, SafetensorError, TypeError, ValueError)


def save_policy(policy: RankingPolicy, folder: Path | str, provenance: Mapping[str, Any] | None = None) -> None:
    """Write a policy as a folder, all or nothing.

    Args:
        policy: Of a registered class.
        folder: Made anew; a model that is there already is replaced, anything else is left alone with an error.
        provenance: Where the policy comes from, as JSON can hold it; kept with it for people to read.
    """
    with atomic_folder(Path(folder), overwrite=True, ours=SETTINGS_FILE) as unfinished:
        put_policy(policy, unfinished, provenance)


def put_policy(policy: RankingPolicy, folder: Path, provenance: Mapping[str, Any] | None = None) -> None:
    """Make a policy the model of a folder that is there already, at once: until then it is the one that was before."""
    arrays = save({name: np.ascontiguousarray(array) for name, array in policy.arrays().items()})
    description = {
        "format": FORMAT,
        "policy": POLICIES.name_of(type(policy)),
        "settings": policy.settings(),
        "cuolr": cuolr.__version__,
        "provenance": dict(provenance or {}),
    }
    description["sha256"] = digest = content_hash(description, arrays)
    with atomic_file(_arrays_file(folder, digest)) as unfinished:
        unfinished.write_bytes(arrays)
    with atomic_file(folder / SETTINGS_FILE) as unfinished:
        unfinished.write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")
    for file in folder.glob(ARRAYS_PATTERN):
        if file != _arrays_file(folder, digest):
            file.unlink()


def load_policy(folder: Path | str) -> RankingPolicy:
    """Read a policy that `save_policy` wrote; anything else, or a damaged one, is refused."""
    folder = Path(folder)
    file = folder / SETTINGS_FILE
    description = _read_description(file)
    digest = description.pop("sha256", None)
    if not isinstance(digest, str) or not re.fullmatch("[0-9a-f]{64}", digest):
        raise InputError(f"{file}: damaged: expected 'sha256' to be a hash, found {digest!r}; save the model again")
    arrays = _read(_arrays_file(folder, digest))
    if content_hash(description, arrays) != digest:
        raise InputError(f"{folder}: damaged: settings and arrays are not what was saved; save the model again")
    try:
        with problems_in(folder):
            policy = POLICIES.get(description["policy"]).from_parts(load(arrays), description["settings"])
            # Policies may be frozen; where one comes from is no part of what it is.
            object.__setattr__(policy, "provenance", provenance_of(folder))
            return policy
    except InputError:
        raise
    except NO_POLICY as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise InputError(f"{folder}: does not hold a '{description.get('policy')}' policy: {reason}") from None


def provenance_of(folder: Path | str) -> dict[str, Any]:
    """Where a saved policy comes from, as far as it was said when it was saved."""
    provenance = _read_description(Path(folder) / SETTINGS_FILE).get("provenance")
    return provenance if isinstance(provenance, dict) else {}


def _arrays_file(folder: Path, digest: str) -> Path:
    return folder / ARRAYS_PATTERN.replace("*", digest[:16])


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror}); expected a saved model") from None


def _read_description(file: Path) -> dict[str, Any]:
    content = _read(file)
    try:
        description = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file}: not valid JSON: {error}") from None
    if not isinstance(description, dict) or description.get("format") != FORMAT:
        raise InputError(f"{file}: not a model of this version of cuolr; expected format '{FORMAT}'")
    return description
