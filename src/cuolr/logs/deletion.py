"""Deletion of sessions from a log, on the request of the person that they are from."""

import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cuolr.errors import InputError, problems_in
from cuolr.files import part_of
from cuolr.logs.aggregate import subtract
from cuolr.logs.changed_candidates import QueriesLeft
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.counting import subtract_sessions
from cuolr.logs.hashed_ids import HASHED_WITH, IdKey, Kind
from cuolr.logs.log_folder import (
    FILES,
    concatenate,
    load_click_log,
    read_click_log,
    read_column,
    read_meta,
    write_click_log,
)
from cuolr.logs.log_meta import DELETIONS, IDENTITY, deletions, identities
from cuolr.output_lock import writing
from cuolr.progress import Stages, no_stages
from cuolr.types import Bools, Ints


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
        without_id: Sessions that are left and have no id of a kind that was given, so that they cannot be found by it.
        sessions: Sessions that were deleted.
        impressions: Their shown documents.
        clicks: Their clicks.
        queries: Queries that were deleted with their documents, because all their sessions were.
        kept: Sessions that are left.
    """

    ids: int
    unknown: int
    without_id: int
    sessions: int
    impressions: int
    clicks: int
    queries: int
    kept: int

    def as_dict(self) -> dict[str, int]:
        """As JSON can hold it."""
        return asdict(self)


def delete_sessions(
    folder: Path | str,
    which: SessionsToDelete,
    counts: Sequence[Path | str] = (),
    dry_run: bool = False,
    stages: Stages = no_stages,
) -> DeletionReport:
    """Delete sessions from a log, all or nothing.

    A query all of whose sessions are deleted goes with them, because its text can be personal, too. The log records how
    many sessions were deleted, and its identity before, by which models that learned from them can be found.

    Args:
        folder: A log of sessions, with ids.
        which: The sessions.
        counts: Logs that were counted or aggregated from this one, to subtract the sessions from.
        dry_run: Whether to write nothing.
        stages: Receives the sessions that were read so far, first to find those to delete, then to write the others.
    """
    with ExitStack() as stack:
        # A second process that deletes from one of these logs must not read it before this one has written it.
        for log in () if dry_run else (folder, *counts):
            stack.enter_context(writing(Path(log)))
        return _delete_sessions(Path(folder), which, [Path(lists) for lists in counts], dry_run, stages)


def _delete_sessions(
    folder: Path, which: SessionsToDelete, counts: Sequence[Path], dry_run: bool, stages: Stages
) -> DeletionReport:
    meta = read_meta(folder)
    if meta["aggregated"] or meta["counted"]:
        form = "an aggregated" if meta["aggregated"] else "a counted"
        raise InputError(
            f"{folder}: {form} log has no ids; delete the sessions from the log that it was made of, and give this one "
            "as counts, or make it again"
        )
    _check_key(folder, meta, which.id_key)
    deleted, nameless, (ids, unknown) = _find(folder, which)
    found = _Found.of(folder, deleted, stages)
    report = DeletionReport(
        ids=ids,
        unknown=unknown,
        without_id=int((nameless & ~deleted).sum()),
        sessions=int(deleted.sum()),
        impressions=found.impressions,
        clicks=found.clicks,
        queries=len(found.orphans),
        kept=int((~deleted).sum()),
    )
    if not report.kept:
        raise InputError(f"{folder}: all {report.sessions:,} sessions would be deleted; remove the folder instead")
    if not report.sessions:
        return report
    for lists in counts:
        _check_made_from(lists, folder, identities(meta))
    logs = [_NewLog(lists, [_subtracted(lists, found)], read_meta(lists).get("source", {})) for lists in counts]
    if not dry_run:
        source = {**meta.get("source", {}), DELETIONS: deletions(folder, meta, report.as_dict())}
        _replace_all([*logs, _NewLog(folder, _without(folder, deleted, found.orphans, stages), source)])
    return report


@dataclass(frozen=True)
class _NewLog:
    """What becomes of a log: its sessions and its provenance."""

    folder: Path
    chunks: Iterable[ClickLog]
    source: dict[str, Any]


def _replace_all(logs: Sequence[_NewLog]) -> None:
    """Write logs, each before the one ahead of it is finished, so that none is replaced until all are written."""
    if not logs:
        return
    log, *others = logs

    def more(unfinished: Path) -> None:
        _copy_others(log.folder, unfinished)
        _replace_all(others)

    write_click_log(log.folder, log.chunks, log.source, overwrite=True, more=more)


def _check_key(folder: Path, meta: dict[str, Any], key: IdKey | None) -> None:
    hashed_with = meta.get("source", {}).get(HASHED_WITH)
    if key is not None and hashed_with is None:
        raise InputError(f"{folder}: the ids of this log are not hashed; leave the key out")
    if key is not None and hashed_with != key.name:
        raise InputError(f"{folder}: the ids of this log are hashed with another key")


def _find(folder: Path, which: SessionsToDelete) -> tuple[Bools, Bools, tuple[int, int]]:
    """[M] whether each session is to be deleted, and whether it lacks an id of a kind that is given.

    And how many ids were given, and how many of them no session has.
    """
    if not which.session_ids and not which.user_ids:
        raise InputError("expected ids of sessions or users to delete, found none")
    found: Bools | None = None
    nameless: Bools | None = None
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
        nameless = known == "" if nameless is None else nameless | (known == "")
    if found is None or nameless is None:
        raise InputError("expected ids of sessions or users to delete, found empty ones only")
    return found, nameless, (given, unknown)


@dataclass(frozen=True)
class _Found:
    """The sessions to delete.

    Attributes:
        sessions: They themselves; None if there are none.
        orphans: Queries that have no other sessions.
    """

    sessions: ClickLog | None
    orphans: Ints

    @property
    def impressions(self) -> int:
        """Number of their shown documents."""
        return 0 if self.sessions is None else int(self.sessions.where.sum())

    @property
    def clicks(self) -> int:
        """Number of their clicks."""
        return 0 if self.sessions is None else int(self.sessions.clicks.sum())

    @classmethod
    def of(cls, folder: Path, deleted: Bools, stages: Stages) -> "_Found":
        start, parts = 0, []
        gone: npt.NDArray[np.bool_] | None = None
        for chunk in read_click_log(folder, ids=False, stages=stages):
            of_chunk = deleted[start : start + len(chunk)]
            start += len(chunk)
            if gone is None:
                gone, left = np.zeros((2, chunk.candidates.n_queries), np.bool_)
            gone[chunk.query[of_chunk]], left[chunk.query[~of_chunk]] = True, True
            if of_chunk.any():
                parts.append(chunk.select(np.flatnonzero(of_chunk)))
        assert gone is not None
        sessions = concatenate(parts, sum(map(len, parts))) if parts else None
        return cls(sessions, np.flatnonzero(gone & ~left))


def _without(folder: Path, deleted: Bools, orphans: Ints, stages: Stages) -> Iterator[ClickLog]:
    """The sessions that are left, over the queries that are left."""
    start, queries = 0, QueriesLeft(orphans)
    for chunk in read_click_log(folder, stages=stages):
        rows = np.flatnonzero(~deleted[start : start + len(chunk)])
        start += len(chunk)
        if len(rows):
            yield queries.of(chunk.select(rows))


def _check_made_from(lists: Path, folder: Path, known: set[str]) -> None:
    """Raise if counts record that they were made from other logs: candidates and lists of two logs may be the same."""
    own = read_meta(lists)
    made_from = identities(own) - identities({IDENTITY: own.get(IDENTITY)})
    if made_from and not made_from & known:
        raise InputError(f"{lists}: was not made from {folder}, but from another log; count this one again")


def _subtracted(folder: Path, found: _Found) -> ClickLog:
    """A counted or aggregated log without the sessions that are deleted."""
    meta = read_meta(folder)
    if not (meta["aggregated"] or meta["counted"]):
        raise InputError(f"{folder}: expected a counted or aggregated log; delete from this one by ids, too")
    lists, sessions = load_click_log(folder, documents=True), found.sessions
    assert sessions is not None
    ours, other = lists.candidates, sessions.candidates
    if not (np.array_equal(ours.query_ids, other.query_ids) and np.array_equal(ours.offsets, other.offsets)):
        raise InputError(f"{folder}: was not made from this log: it has other queries or documents")
    with problems_in(folder):
        return QueriesLeft(found.orphans).of((subtract_sessions if lists.counted else subtract)(lists, sessions))


def _copy_others(folder: Path, unfinished: Path) -> None:
    """Keep what others wrote to the folder, such as propensities."""
    for file in folder.iterdir():
        if file.name not in FILES and file.is_file():
            shutil.copy2(part_of(folder, file.name), unfinished / file.name)
