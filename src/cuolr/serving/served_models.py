"""The models that are served, each replaced when its folder changes.

A changed folder is noticed by the time, size and inode of its files. The new model is loaded and tried beside the old
one, which answers until then: a request keeps the model that it began with. A folder that cannot be loaded, or that
takes other features, changes nothing.
"""

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from cuolr.errors import InputError, InputWarning
from cuolr.policies.model_folder import SETTINGS_FILE, load_policy
from cuolr.policies.named_documents import NamedDocuments, expected_columns
from cuolr.policies.policy import POLICIES, RankingPolicy, ScoringPolicy
from cuolr.registry import unknown_name
from cuolr.types import FeatureColumn, Floats

NESTED = frozenset({list, dict})


@dataclass(frozen=True)
class DocumentFeatures:
    """How the features of a document become numbers.

    Attributes:
        policy: The model.
    """

    policy: RankingPolicy

    @cached_property
    def columns(self) -> tuple[FeatureColumn, ...]:
        """What documents must have, in the order of the numbers; empty if the model takes any documents."""
        return () if self.policy.n_features is None else expected_columns(self.policy).columns

    def numbers(self, ids: Sequence[str], documents: Sequence[Mapping[str, Any] | Sequence[Any]]) -> Floats:
        """[n, F] the numbers of each document; NaN = missing.

        Args:
            ids: Of the documents, for messages.
            documents: The features of each, by name or as a list; None = missing.

        Raises:
            InputError: If features are missing, new, or not of their kind.
        """
        if not self.columns:
            return np.empty((len(documents), 0), np.float32)
        named = [self._named(name, features) for name, features in zip(ids, documents, strict=True)]
        with warnings.catch_warnings():
            # A level that training did not have is none of the levels.
            warnings.simplefilter("ignore", InputWarning)
            numbers = NamedDocuments.of_dictionaries(self.policy, named, ids).features
        infinite = np.argwhere(np.isinf(numbers))
        if len(infinite):
            raise InputError(
                f"document '{ids[infinite[0, 0]]}': expected finite numbers in float32, found a larger one"
            )
        return numbers

    def _named(self, document: str, features: Mapping[str, Any] | Sequence[Any]) -> Mapping[str, Any]:
        """The features by name; the values are those that JSON has, but for lists and objects."""
        if not isinstance(features, Mapping):
            if len(features) != len(self.columns):
                raise InputError(f"document '{document}': expected {len(self.columns)} features, found {len(features)}")
            features = {column.name: value for column, value in zip(self.columns, features, strict=True)}
        if not NESTED.isdisjoint(map(type, features.values())):
            name = next(name for name, value in features.items() if type(value) in NESTED)
            raise InputError(f"document '{document}': feature '{name}': expected a value, found a list or an object")
        return features


# Hexadecimal digits of a model's hash that name its version.
VERSION_DIGITS = 12
# What says that the files of a folder are others: name, time, size and inode of each.
Fingerprint = tuple[tuple[str, int, int, int], ...]


@dataclass(frozen=True)
class ServedModel:
    """A model as it was loaded.

    Attributes:
        name: Of its folder.
        version: The first digits of its hash.
        policy: Ranks.
        features: What documents must have.
    """

    name: str
    version: str
    policy: RankingPolicy
    features: DocumentFeatures

    @property
    def scores(self) -> bool:
        """Whether it gives a score to each document, rather than a list only."""
        return isinstance(self.policy, ScoringPolicy)

    def describe(self) -> dict[str, Any]:
        """For /model: nothing that says where it lies or what it was trained on."""
        columns = [
            {"name": column.name, "kind": column.kind, "levels": list(column.levels)}
            for column in self.features.columns
        ]
        return {
            "name": self.name,
            "version": self.version,
            "policy": POLICIES.name_of(type(self.policy)),
            "scores": self.scores,
            "features": columns,
        }

    @classmethod
    def load(cls, folder: Path, name: str) -> Self:
        """Read a model, which is tried on made-up documents."""
        version = _version(folder)
        policy = load_policy(folder)
        if version is None or _version(folder) != version:
            raise InputError(f"{folder}: changed while it was read; try again")
        return cls(name, version, policy, DocumentFeatures(policy))


@dataclass(frozen=True)
class Reload:
    """What became of a folder that changed.

    Attributes:
        name: Of the model.
        before: Version that was served.
        after: Version that is served.
        problem: Why the new model is not served; "" if it is.
    """

    name: str
    before: str
    after: str
    problem: str = ""


@dataclass
class ServedModels:
    """The models by name; the first is the default.

    Attributes:
        folders: The folder of each name.
        models: What is served now.
        seen: Fingerprint of each folder as it was tried last.
        accept: Raises `InputError` if a new model must not be served.
    """

    folders: Mapping[str, Path]
    models: dict[str, ServedModel]
    seen: dict[str, Fingerprint | None] = field(default_factory=dict)
    accept: Callable[[ServedModel], object] = lambda model: None

    @classmethod
    def load(cls, folders: Sequence[Path]) -> Self:
        """Load all models, each named as its folder."""
        names = [folder.resolve().name for folder in folders]
        if not folders:
            raise InputError("MODEL: expected the folder of a model, found none")
        if repeated := next((name for name in names if names.count(name) > 1), None):
            raise InputError(f"MODEL: expected folders of different names, found '{repeated}' twice")
        served = cls(dict(zip(names, folders, strict=True)), {})
        for name, folder in served.folders.items():
            served.seen[name] = _fingerprint(folder)
            served.models[name] = ServedModel.load(folder, name)
        return served

    def get(self, name: str | None = None) -> ServedModel:
        """The model of this name; None = the first."""
        if name is None:
            return next(iter(self.models.values()))
        if name not in self.models:
            raise unknown_name("model", name, self.models)
        return self.models[name]

    def reload(self) -> list[Reload]:
        """Replace models whose folder has changed since it was last looked at."""
        changed = []
        for name, folder in self.folders.items():
            found, before = _fingerprint(folder), self.models[name]
            if found is None or found == self.seen[name]:
                continue
            self.seen[name] = found
            try:
                model = ServedModel.load(folder, name)
                _check_same_features(before, model)
                self.accept(model)
            except Exception as error:  # whatever is wrong with a folder, the old model answers
                changed.append(Reload(name, before.version, before.version, str(error).partition("\n")[0]))
                continue
            if model.version != before.version:
                self.models[name] = model
                changed.append(Reload(name, before.version, model.version))
        return changed


def _version(folder: Path) -> str | None:
    """The first digits of the hash that a model claims; None if it claims none."""
    try:
        description = json.loads((folder / SETTINGS_FILE).read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    digest = description.get("sha256") if isinstance(description, dict) else None
    return digest[:VERSION_DIGITS] if isinstance(digest, str) else None


def _fingerprint(folder: Path) -> Fingerprint | None:
    """None if there is no model, as for a moment while a folder is replaced.

    All files count: a copy that takes its time may end with another one than `model.json`.
    """
    try:
        files = sorted(file for file in folder.iterdir() if file.is_file())
        status = [(file.name, file.stat()) for file in files]
    except OSError:
        return None
    if SETTINGS_FILE not in [name for name, _ in status]:
        return None
    return tuple((name, found.st_mtime_ns, found.st_size, found.st_ino) for name, found in status)


def _check_same_features(old: ServedModel, new: ServedModel) -> None:
    names = [{column.name for column in model.features.columns} for model in (old, new)]
    if names[0] != names[1]:
        differing = sorted(names[0] ^ names[1])[0]
        raise InputError(
            f"expected the features of the model that is served, found a difference in '{differing}'; to change them, "
            "start the service again"
        )
