"""Which models learned from a log, by themselves or by the model that their training started from."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from cuolr.errors import InputError
from cuolr.logs.log_meta import IDENTITY, identities
from cuolr.policies.model_folder import (
    SETTINGS_FILE,
    STUDENT_FOLDER,
    digest_of_arrays,
    load_policy,
    provenance_of,
    provenance_of_any_version,
)


@dataclass(frozen=True)
class LogTraces:
    """By what a model's record of its training log is recognised.

    Attributes:
        identity: The identity of the log.
        related: The identities of the logs that its sessions come from.
        clicks_sha256: See `digest_of_clicks`; models trained in Python record nothing else.
    """

    identity: str | None
    related: frozenset[str]
    clicks_sha256: str


@dataclass(frozen=True)
class LearnedModel:
    """A model that learned from a log.

    Attributes:
        folder: Folder of the model.
        same: Whether it learned from this very log; otherwise from one that shares sessions with it, such as one that
            was merged from it, or from the model that its training started from.
        started_from: Folder of that model, if it is the reason.
    """

    folder: Path
    same: bool
    started_from: Path | None = None


@dataclass(frozen=True)
class UnclearModel:
    """A model that may have learned from a log.

    Attributes:
        folder: Folder of the model.
        reason: Why that is not known.
    """

    folder: Path
    reason: str


@dataclass(frozen=True)
class FoundModels:
    """Models that learned from a log, and those of which that is not known."""

    learned: tuple[LearnedModel, ...] = ()
    unclear: tuple[UnclearModel, ...] = ()


def models_that_learned(traces: LogTraces, folders: Sequence[Path]) -> FoundModels:
    """The models in these folders, at any depth, that learned from a log.

    Args:
        traces: By what the log is recognised.
        folders: Folders to search.
    """
    models = {model.folder: model for folder in folders for model in _in_folder(folder)}
    learned = {folder: found for folder, model in models.items() if (found := model.learned(traces)) is not None}
    starts = {folder: _starts(model, models) for folder, model in models.items() if model.start is not None}
    while more := {
        folder: LearnedModel(folder, False, known[0])
        for folder, start in starts.items()
        if folder not in learned and (known := [earlier for earlier in start if earlier in learned])
    }:
        learned |= more
    unclear = {folder: model.problem for folder, model in models.items() if model.problem and folder not in learned}
    for folder, start in starts.items():
        if not start and folder not in learned and folder not in unclear:
            unclear[folder] = "training started from a model that is not in the folders searched"
    while further := {
        folder: f"training started from {unknown[0]}"
        for folder, start in starts.items()
        if folder not in learned | unclear and (unknown := [earlier for earlier in start if earlier in unclear])
    }:
        unclear |= further
    return FoundModels(tuple(learned.values()), tuple(UnclearModel(*item) for item in unclear.items()))


@dataclass(frozen=True)
class _Model:
    """A model that was found.

    Attributes:
        folder: Its folder.
        provenance: What it records; nothing if it cannot be read.
        problem: Why it cannot be read.
    """

    folder: Path
    provenance: dict[str, Any]
    problem: str | None = None

    @property
    def start(self) -> dict[str, Any] | None:
        """What it records of the model that its training started from, if from one."""
        start = self.provenance.get("warm_start")
        return start if isinstance(start, dict) else None

    @cached_property
    def digest(self) -> str | None:
        """By what it is recognised as the start of another; None if it cannot be loaded."""
        try:
            return digest_of_arrays(load_policy(self.folder))
        except InputError:
            return None

    def learned(self, traces: LogTraces) -> LearnedModel | None:
        """Whether it learned from the log itself."""
        log = self.provenance.get("log")
        if not isinstance(log, dict):
            return None
        same = log.get("clicks_sha256") == traces.clicks_sha256
        same |= traces.identity is not None and log.get(IDENTITY) == traces.identity
        return LearnedModel(self.folder, same) if same or identities(log) & traces.related else None


def _in_folder(folder: Path) -> Iterator[_Model]:
    if not folder.is_dir():
        raise InputError(f"{folder}: folder not found")
    for file in sorted(folder.rglob(SETTINGS_FILE)):
        if file.parent.name == STUDENT_FOLDER and (file.parents[1] / SETTINGS_FILE).is_file():
            continue  # part of the model that it is a student of
        try:
            yield _Model(file.parent, provenance_of(file.parent))
        except InputError:
            yield from _unreadable(file.parent)


def _unreadable(folder: Path) -> Iterator[_Model]:
    """A model of another version, whose record may be as today, or a damaged one; nothing if it is no model."""
    try:
        provenance = provenance_of_any_version(folder)
    except InputError:
        yield _Model(folder, {}, "cannot be read")
        return
    if provenance is not None:
        yield _Model(folder, provenance, "cannot be read: another version of cuolr saved it")


def _starts(model: _Model, models: dict[Path, _Model]) -> list[Path]:
    """The models that training may have started from: with the same arrays or, if they cannot be read, of that name."""
    assert model.start is not None
    digest, name = model.start.get("sha256"), model.start.get("model")
    others = [other for other in models.values() if other is not model]
    named = {other.folder for other in others if name and _is(other.folder, name)}
    found = [
        other.folder for other in others if other.digest in (digest, None) and (other.digest or other.folder in named)
    ]
    # Copies have the same arrays; the one of that name tells more.
    return [folder for folder in found if folder in named] or found


def _is(folder: Path, name: str) -> bool:
    """Whether a name that a model records is that of a folder; it may be none that a file system can have."""
    try:
        return folder.resolve() == Path(name).resolve()
    except (OSError, ValueError):
        return False
