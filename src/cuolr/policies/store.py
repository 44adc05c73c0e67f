"""Saved policies: a folder with the arrays (safetensors) and all else (JSON). Loading one runs no code from it."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

import cuolr
from cuolr.errors import InputError
from cuolr.files import atomic_folder
from cuolr.policies.base import POLICIES, RankingPolicy

ARRAYS_FILE = "model.safetensors"
SETTINGS_FILE = "model.json"
FORMAT = "cuolr-policy-1"


def save_policy(policy: RankingPolicy, folder: Path, provenance: Mapping[str, Any] | None = None) -> None:
    """Write a policy as a folder, all or nothing.

    Args:
        policy: Of a registered class.
        folder: Made anew; a model that is there already is replaced, anything else is left alone with an error.
        provenance: Where the policy comes from, as JSON can hold it; kept with it for people to read.
    """
    arrays = save({name: np.ascontiguousarray(array) for name, array in policy.arrays().items()})
    description = {
        "format": FORMAT,
        "policy": POLICIES.name_of(type(policy)),
        "settings": policy.settings(),
        "cuolr": cuolr.__version__,
        "provenance": dict(provenance or {}),
        "arrays_sha256": hashlib.sha256(arrays).hexdigest(),
    }
    with atomic_folder(folder, overwrite=True, ours=SETTINGS_FILE) as unfinished:
        (unfinished / ARRAYS_FILE).write_bytes(arrays)
        (unfinished / SETTINGS_FILE).write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")


def load_policy(folder: Path) -> RankingPolicy:
    """Read a policy that `save_policy` wrote; anything else, or a damaged one, is refused."""
    try:
        description = json.loads((folder / SETTINGS_FILE).read_bytes())
        arrays = (folder / ARRAYS_FILE).read_bytes()
    except OSError as error:
        raise InputError(f"{error.filename}: cannot be read ({error.strerror}); expected a saved model") from None
    except ValueError as error:
        raise InputError(f"{folder / SETTINGS_FILE}: not valid JSON: {error}") from None
    if not isinstance(description, dict) or description.get("format") != FORMAT:
        raise InputError(f"{folder / SETTINGS_FILE}: not a model of this version of cuolr; expected format '{FORMAT}'")
    if hashlib.sha256(arrays).hexdigest() != description.get("arrays_sha256"):
        raise InputError(f"{folder / ARRAYS_FILE}: damaged, or from another model; save the model again")
    policy = POLICIES.get(str(description.get("policy")))
    try:
        return policy.from_parts(load(arrays), description["settings"])
    except (KeyError, TypeError, ValueError, SafetensorError) as error:
        raise InputError(f"{folder}: does not hold a '{description['policy']}' policy: {error!r}") from None
