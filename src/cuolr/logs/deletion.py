"""Deletion of sessions from a log, on the request of the person that they are from."""

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cuolr.data.candidate_store import DOCUMENT_IDS, FEATURE_NAMES
from cuolr.errors import InputError
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.hashed_ids import HASHED_WITH, IdKey, Kind
from cuolr.logs.lineage import DELETIONS, described
from cuolr.logs.log_folder import REQUIRED_FILES, read_click_log, read_column, read_meta, write_click_log
from cuolr.types import Bools, Candidates, Ints

# What a log writes itself; other files of its folder are kept.
OWN_FILES = (*REQUIRED_FILES, DOCUMENT_IDS, FEATURE_NAMES)


@dataclass(frozen=True)
class SessionsToDelete:
    """Sessions by their ids, or by their users.

    Attributes:
        session_ids: Ids of sessions, as in the table that was imported.
        user_ids: Ids of users; all their sessions are deleted.
        id_key: Key to hash these ids with, for a log whose ids are hashed. None = they are as in the log.
    """

    session_ids: Sequence[str] = ()
    user_ids: Sequence[str] = ()
    id_key: IdKey | None = None


@dataclass(frozen=True)
class DeletionReport:
    """What was deleted.

    Attributes:
        ids: Number of different ids that were given.
        unknown: Number of ids that no session of the log has.
        sessions: Sessions that were deleted.
        impressions: Their shown documents.
        clicks: Their clicks.
        queries: Queries that were deleted with their documents, because all their sessions were.
        kept: Sessions that are left.
    """

    ids: int
    unknown: int
    sessions: int
    impressions: int
    clicks: int
    queries: int
    kept: int

    def as_dict(self) -> dict[str, int]:
        """As JSON can hold it."""
        return asdict(self)


def delete_sessions(folder: Path | str, which: SessionsToDelete, dry_run: bool = False) -> DeletionReport:
    """Delete sessions from a log, all or nothing.

    A query all of whose sessions are deleted goes with them, because its text can be personal, too. The log records how
    many sessions were deleted, and its identity before, by which models that learned from them can be found.

    Args:
        folder: A log of sessions, with ids.
        which: The sessions.
        dry_run: Whether to write nothing.
    """
    folder = Path(folder)
    meta = read_meta(folder)
    if meta["aggregated"]:
        raise InputError(
            f"{folder}: an aggregated log has no ids; delete the sessions from the log that it was made of, and "
            "aggregate that again"
        )
    _check_key(folder, meta, which.id_key)
    deleted, ids, unknown = _find(folder, which)
    counts = _Counts.of(folder, deleted)
    report = DeletionReport(
        ids=ids,
        unknown=unknown,
        sessions=int(deleted.sum()),
        impressions=counts.impressions,
        clicks=counts.clicks,
        queries=len(counts.orphans),
        kept=int((~deleted).sum()),
    )
    if not report.kept:
        raise InputError(f"{folder}: all {report.sessions:,} sessions would be deleted; remove the folder instead")
    if report.sessions and not dry_run:
        source = dict(meta.get("source", {}))
        source[DELETIONS] = [*source.get(DELETIONS, []), {**described(folder, meta), "deleted": report.as_dict()}]
        write_click_log(
            folder,
            _without(folder, deleted, counts.orphans),
            source,
            overwrite=True,
            more=lambda unfinished: _copy_others(folder, unfinished),
        )
    return report


def _check_key(folder: Path, meta: dict[str, Any], key: IdKey | None) -> None:
    hashed_with = meta.get("source", {}).get(HASHED_WITH)
    if key is not None and hashed_with is None:
        raise InputError(f"{folder}: the ids of this log are not hashed; leave the key out")
    if key is not None and hashed_with != key.name:
        raise InputError(f"{folder}: the ids of this log are hashed with another key")


def _find(folder: Path, which: SessionsToDelete) -> tuple[Bools, int, int]:
    """[M] whether each session is to be deleted; how many ids were given, and how many of them no session has."""
    if not which.session_ids and not which.user_ids:
        raise InputError("expected ids of sessions or users to delete, found none")
    found: Bools | None = None
    given = unknown = 0
    kinds: tuple[tuple[Kind, Sequence[str]], ...] = (("session_id", which.session_ids), ("user_id", which.user_ids))
    for kind, ids in kinds:
        wanted = np.unique(np.asarray([text for text in ids if text], np.str_))
        if not len(wanted):
            continue
        known = read_column(folder, kind)
        if known is None:
            raise InputError(
                f"{folder}: has no {kind}, so nothing can be found by it; import the log again to have one"
            )
        if which.id_key is not None:
            wanted = which.id_key.hash(kind, wanted.tolist())
        given += len(wanted)
        unknown += int((~np.isin(wanted, known)).sum())
        matches = np.isin(known, wanted)
        found = matches if found is None else found | matches
    if found is None:
        raise InputError("expected ids of sessions or users to delete, found empty ones only")
    return found, given, unknown


@dataclass(frozen=True)
class _Counts:
    """What goes with the deleted sessions.

    Attributes:
        impressions: Their shown documents.
        clicks: Their clicks.
        orphans: Queries that have deleted sessions only.
    """

    impressions: int
    clicks: int
    orphans: Ints

    @classmethod
    def of(cls, folder: Path, deleted: Bools) -> "_Counts":
        impressions = clicks = start = 0
        gone: npt.NDArray[np.bool_] | None = None
        for chunk in read_click_log(folder, ids=False):
            of_chunk = deleted[start : start + len(chunk)]
            start += len(chunk)
            if gone is None:
                gone, left = np.zeros((2, chunk.candidates.n_queries), np.bool_)
            gone[chunk.query[of_chunk]], left[chunk.query[~of_chunk]] = True, True
            impressions += int(chunk.where[of_chunk].sum())
            clicks += int(chunk.clicks[of_chunk].sum())
        assert gone is not None
        return cls(impressions, clicks, np.flatnonzero(gone & ~left))


def _without(folder: Path, deleted: Bools, orphans: Ints) -> Iterator[ClickLog]:
    """The sessions that are left, over the queries that are left."""
    start = 0
    candidates: Candidates | None = None
    for chunk in read_click_log(folder):
        if candidates is None:
            queries = np.setdiff1d(np.arange(chunk.candidates.n_queries), orphans)
            candidates = chunk.candidates.select(queries) if len(orphans) else chunk.candidates
            number = np.zeros(chunk.candidates.n_queries, np.int32)
            number[queries] = np.arange(len(queries))
        rows = np.flatnonzero(~deleted[start : start + len(chunk)])
        start += len(chunk)
        if len(rows):
            kept = chunk.select(rows)
            yield replace(kept, candidates=candidates, query=number[kept.query])


def _copy_others(folder: Path, unfinished: Path) -> None:
    """Keep what others wrote to the folder, such as propensities."""
    for file in folder.iterdir():
        if file.name not in OWN_FILES and file.is_file():
            shutil.copy2(file, unfinished / file.name)
