"""Which models learned from a log."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cuolr.errors import InputError
from cuolr.logs.lineage import IDENTITY, identities
from cuolr.policies.store import SETTINGS_FILE, provenance_of


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
            was merged from it.
    """

    folder: Path
    same: bool


def models_that_learned(traces: LogTraces, folders: Sequence[Path]) -> list[LearnedModel]:
    """The models in these folders, at any depth, that learned from a log.

    Args:
        traces: By what the log is recognised.
        folders: Folders to search.
    """
    return [found for folder in folders for found in _in_folder(traces, folder)]


def _in_folder(traces: LogTraces, folder: Path) -> Iterator[LearnedModel]:
    if not folder.is_dir():
        raise InputError(f"{folder}: folder not found")
    for file in sorted(folder.rglob(SETTINGS_FILE)):
        try:
            log = provenance_of(file.parent).get("log")
        except InputError:
            continue  # a file of this name that is no model
        if not isinstance(log, dict):
            continue
        same = log.get("clicks_sha256") == traces.clicks_sha256
        same |= traces.identity is not None and log.get(IDENTITY) == traces.identity
        if same or identities(log) & traces.related:
            yield LearnedModel(file.parent, same)
