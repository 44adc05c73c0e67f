"""The folder of a model: arrays (safetensors) and settings (JSON). Loading a policy executes no code from it.

model.json                     settings, provenance, and a hash over these and the arrays
model-<hash>.safetensors       the arrays with this hash; other files of this form are left over from a crash
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from reprlib import repr as in_short
from textwrap import shorten
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load, save

import cuolr
from cuolr.errors import InputError, check_format, does_not_match, problems_in, unreadable
from cuolr.files import (
    atomic_file,
    atomic_folder,
    content_hash,
    is_verifying,
    part_of,
    require_file,
)
from cuolr.json_files import MAX_JSON_BYTES, Shape, check_shape, parse_json
from cuolr.policies.policy import POLICIES, RankingPolicy
from cuolr.types import Candidates

# A model with more features was not trained by cuolr: LightGBM's text names each feature.
MAX_FEATURES = 1 << 20
# Models with more features are not tried: it would take much memory, and their documents have as many.
MAX_FEATURES_TO_TRY = 1 << 14
# Settings that say how large a network is; a group of them; and what they may be whatever the arrays are.
SIZES_OF_NETWORKS, GROUPS = ("n_features", "k", "hidden", "encoder_settings"), ("encoder_settings",)
LARGEST_WITHOUT_ARRAYS = 1 << 16
# Documents of each made-up query, and length of its list.
SIZES, K = (3, 0, 1, 2), 2


def check_sizes(arrays: Mapping[str, npt.NDArray[Any]], settings: object) -> None:
    """Raise if a network is larger than its arrays, before torch, which takes seconds, is loaded to build it.

    >>> check_sizes({"bias": np.zeros(3)}, {"members": [{"hidden": [10**9]}]})
    Traceback (most recent call last):
        ...
    ValueError: hidden: expected at most 65,536, found 1,000,000,000; the arrays hold 3 numbers

    Args:
        arrays: The parameters of the policy.
        settings: Its settings, with those of its members.
    """
    numbers = sum(array.size for array in arrays.values())
    limit = max(numbers, LARGEST_WITHOUT_ARRAYS)
    for name, size in _sizes(settings):
        if size > limit:
            raise ValueError(f"{name}: expected at most {limit:,}, found {size:,}; the arrays hold {numbers:,} numbers")


def _sizes(settings: object, name: str = "") -> Iterator[tuple[str, int]]:
    """The sizes in the settings of networks, at any depth."""
    if isinstance(settings, dict):
        for key, value in settings.items():
            yield from _sizes(value, key if key in SIZES_OF_NETWORKS else name if name in GROUPS else "")
    elif isinstance(settings, list):
        for value in settings:
            yield from _sizes(value, name)
    elif name and type(settings) is int:
        yield name, settings


def check_policy(policy: RankingPolicy) -> None:
    """Raise if a policy cannot rank made-up documents, some of whose values are missing; the wrong parts say why."""
    n_features = 1 if policy.n_features is None else policy.n_features
    if not 0 < n_features <= MAX_FEATURES:
        raise ValueError(f"expected 1 to {MAX_FEATURES:,} features, found {n_features:,}")
    names = getattr(getattr(policy, "normaliser", None), "feature_names", None)
    if names is not None and len(names) != n_features:
        raise ValueError(f"feature_names: expected {n_features} names, found {len(names)}")
    if policy.recipe is not None and len(policy.recipe.feature_names) != n_features:
        raise ValueError(f"recipe: expected {n_features} features, found {len(policy.recipe.feature_names)}")
    if n_features > MAX_FEATURES_TO_TRY:
        return
    ranking = policy.rank(_documents(n_features), K)
    expected = [min(size, K) for size in SIZES]
    for row, shown, size in zip(ranking.tolist(), expected, SIZES, strict=True):
        if not set(row[:shown]) <= set(range(size)) or len({*row[:shown]}) != shown or set(row[shown:]) - {-1}:
            raise ValueError(f"expected each document at most once, found the ranking {row} of {size} documents")


def _documents(n_features: int) -> Candidates:
    features = np.random.default_rng(0).normal(size=(sum(SIZES), n_features)).astype(np.float32)
    features[-1] = np.nan
    return Candidates(features, np.cumsum((0, *SIZES)), np.array([f"query {i}" for i in range(len(SIZES))]))


SETTINGS_FILE = "model.json"
ARRAYS_PATTERN = "model-*.safetensors"
# What describes the arrays takes some 60 bytes for each, and seconds to read for 200,000 of them.
MAX_HEADER_BYTES = 4 << 20
# The folder of a student, a model of its own, inside the folder of its teacher.
STUDENT_FOLDER = "student"
FORMAT_FAMILY = "cuolr-policy-"
FORMAT = f"{FORMAT_FAMILY}4"


# Characters of a message about a model that could not be rebuilt.
LONGEST_REASON = 500
# What is read of a model's provenance.
PROVENANCE: Shape = {
    "preset": str,
    "log": {"clicks_sha256": str, "sessions_sha256": str, "sessions": int, "first": str, "last": str},
    "settings": {
        "learner": {"name": str},
        "training": {"steps": int, "seed": int, "held_out": float},
        "validated_by": {},
    },
    "training": {"step": int, "steps": int, "validation": float},
    "warm_start": {"model": str, "sha256": str, "last": str, "overlaps": bool},
}


def save_policy(policy: RankingPolicy, folder: Path | str, provenance: Mapping[str, Any] | None = None) -> None:
    """Write a policy to a folder, atomically.

    Args:
        policy: A policy of a registered class.
        folder: The folder to create; an existing model is replaced, any other folder raises an error.
        provenance: Where the policy comes from, as JSON values; saved with it.
    """
    with atomic_folder(Path(folder), overwrite=True, ours=SETTINGS_FILE) as unfinished:
        put_policy(policy, unfinished, provenance)


def put_policy(policy: RankingPolicy, folder: Path, provenance: Mapping[str, Any] | None = None) -> None:
    """Replace the model of an existing folder, atomically."""
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
    """Read a policy that `save_policy` wrote; a damaged one raises `InputError`."""
    folder = Path(folder)
    file = part_of(folder, SETTINGS_FILE)
    description = _read_description(file)
    digest = description.pop("sha256", None)
    if not isinstance(digest, str) or not re.fullmatch("[0-9a-f]{64}", digest):
        raise InputError(
            f"{file}: damaged: expected 'sha256' to be a hash, found {in_short(digest)}; save the model again"
        )
    arrays = _read(part_of(folder, _arrays_file(folder, digest).name))
    if is_verifying() and content_hash(description, arrays) != digest:
        raise does_not_match(folder)
    try:
        with problems_in(folder):
            parts = _parts(arrays)
            check_sizes(parts, description["settings"])
            policy = POLICIES.get(description["policy"]).from_parts(parts, description["settings"])
            check_policy(policy)
            # Policies may be frozen dataclasses.
            object.__setattr__(policy, "provenance", provenance_of(folder))
            return policy
    except InputError:
        raise
    except Exception as error:  # the files are undamaged, but no policy could have saved them: anything may go wrong
        reason = shorten(f"{type(error).__name__}: {error}", LONGEST_REASON, placeholder=" …")
        raise InputError(f"{folder}: does not hold a '{description.get('policy')}' policy: {reason}") from None


def provenance_of(folder: Path | str) -> dict[str, Any]:
    """Where a saved policy comes from, as recorded when it was saved."""
    file = part_of(Path(folder), SETTINGS_FILE)
    provenance = _read_description(file).get("provenance")
    if not isinstance(provenance, dict):
        return {}
    with problems_in(file):
        check_shape(provenance, PROVENANCE, "provenance")
    return provenance


def provenance_of_any_version(folder: Path) -> dict[str, Any] | None:
    """Where a policy comes from that this or another version of cuolr saved; None if the file is of something else."""
    description = _read_json(part_of(folder, SETTINGS_FILE))
    if not isinstance(description, dict) or not str(description.get("format")).startswith(FORMAT_FAMILY):
        return None
    provenance = description.get("provenance")
    return provenance if isinstance(provenance, dict) else {}


def digest_of_arrays(policy: RankingPolicy) -> str:
    """By what a model that training started from is recognised."""
    return content_hash(*(part for item in sorted(policy.arrays().items()) for part in item))


def _arrays_file(folder: Path, digest: str) -> Path:
    return folder / ARRAYS_PATTERN.replace("*", digest[:16])


def _parts(arrays: bytes) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a model, by name."""
    if (header := int.from_bytes(arrays[:8], "little")) > MAX_HEADER_BYTES:
        raise ValueError(f"expected at most {MAX_HEADER_BYTES:,} bytes that describe arrays, found {header:,}")
    try:
        return load(arrays)
    except KeyError as error:
        raise ValueError(f"expected arrays of types that NumPy has, found {error.args[0]}") from None


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        if (file.parent / "sessions.parquet").is_file():
            raise InputError(f"{file.parent}: expected a saved model, found a click log") from None
        raise InputError(f"{unreadable(file, error)}; expected a saved model") from None


def _read_json(file: Path) -> Any:
    if file.is_file():
        require_file(file, MAX_JSON_BYTES)
    content = _read(file)
    with problems_in(file):
        return parse_json(content)


def _read_description(file: Path) -> dict[str, Any]:
    description = _read_json(file)
    check_format(description.get("format") if isinstance(description, dict) else None, FORMAT, file, "a model")
    described: dict[str, Any] = description
    return described
