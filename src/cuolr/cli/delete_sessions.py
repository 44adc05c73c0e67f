"""`cuolr delete-sessions`: delete the sessions of a person from a click log."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from cuolr.cli.terminal import say, show_json, stage_bars
from cuolr.errors import InputError, unreadable
from cuolr.logs.deletion import DeletionReport, SessionsToDelete
from cuolr.logs.deletion import delete_sessions as delete
from cuolr.logs.hashed_ids import HASHED_WITH, IdKey
from cuolr.logs.log_folder import load_click_log, read_meta
from cuolr.logs.log_meta import IDENTITY, digest_of_clicks, identities
from cuolr.output_lock import hold
from cuolr.progress import Stages

if TYPE_CHECKING:
    from cuolr.policies.find_models import FoundModels, LogTraces

Ids = Annotated[tuple[str, ...], tyro.conf.arg(metavar="ID"), tyro.conf.UseAppendAction]


@dataclass(frozen=True)
class SessionFlags:
    """Sessions to delete.

    Attributes:
        session_id: Id of a session.
        session_ids: File of session ids, one per line.
        user_id: Id of a user, all of whose sessions are deleted.
        user_ids: File of user ids, one per line.
        hash_ids: The key that the ids of the log are hashed with; the given ids are hashed with it, too.
    """

    session_id: Ids = ()
    session_ids: Path | None = None
    user_id: Ids = ()
    user_ids: Path | None = None
    hash_ids: Annotated[Path | None, tyro.conf.arg(metavar="KEYFILE")] = None

    def which(self) -> SessionsToDelete:
        """As the library takes them."""
        sessions, users = [*self.session_id, *_lines(self.session_ids)], [*self.user_id, *_lines(self.user_ids)]
        if not any((*sessions, *users)):
            raise InputError("expected sessions to delete: give --session-id, --session-ids, --user-id or --user-ids")
        return SessionsToDelete(sessions, users, None if self.hash_ids is None else IdKey.read(self.hash_ids))


def delete_sessions(
    log: tyro.conf.Positional[Path],
    which: SessionFlags = SessionFlags(),
    counts: tuple[Path, ...] = (),
    models: tuple[Path, ...] = (),
    dry_run: bool = False,
    json: bool = False,
) -> None:
    """Delete sessions from a click log, and tell which models learned from it.

    The log is written anew and replaced at once. A query all of whose sessions are deleted goes with them. Models are
    not changed: train those that are listed again, on what is left.

    Args:
        log: Folder of a click log with ids.
        which: Sessions to delete.
        counts: Folders of logs that were counted or aggregated from this one; the sessions are subtracted from them.
        models: Folders to search for models that learned from this log, or from one that shares sessions with it.
        dry_run: Say what would be deleted, and write nothing.
        json: Print JSON instead of messages.
    """
    chosen = which.which()
    for written in () if dry_run else (log, *counts):
        hold(written)
    with stage_bars() as stages:
        found = _models(log, models, stages)
        hashed = HASHED_WITH in read_meta(log).get("source", {})
        report = delete(log, chosen, counts, dry_run, stages)
    if json:
        show_json({"log": str(log), "dry_run": dry_run, **report.as_dict(), **_as_json(found)})
    without_key = hashed and chosen.id_key is None
    if not report.sessions:
        raise _nothing_found(log, report, without_key)
    if json:
        return
    _tell(report, dry_run)
    if report.unknown and without_key:
        say("note: the ids of this log are hashed; to find a session by its own id, give the key: --hash-ids KEYFILE")
    if found is None:
        say("note: models that learned from this log are listed with --models FOLDER")
        return
    _tell_models(found, ", ".join(map(str, models)))


def _nothing_found(log: Path, report: DeletionReport, without_key: bool) -> InputError:
    """The error if no session has any of the ids: a request that was not met must not look as if it was."""
    key = "; the ids of this log are hashed: give the key with --hash-ids KEYFILE" if without_key else ""
    nameless = f"; {_nameless(report)}" if report.without_id else ""
    return InputError(f"{log}: nothing was deleted: no session has any of the {report.ids:,} ids given{key}{nameless}")


def _tell(report: DeletionReport, dry_run: bool) -> None:
    verb = "would delete" if dry_run else "deleted"
    say(
        f"{verb} {report.sessions:,} sessions with {report.impressions:,} impressions and {report.clicks:,} clicks; "
        f"{report.kept:,} are left"
    )
    if report.queries:
        say(f"{verb} {report.queries:,} queries, which no other session has")
    if report.without_id:
        say(f"warning: {_nameless(report)}")
    if report.unknown:
        say(f"note: {report.unknown:,} of {report.ids:,} ids are not in the log")


def _nameless(report: DeletionReport) -> str:
    return f"{report.without_id:,} sessions have no id and cannot be found"


def _tell_models(found: "FoundModels", folders: str) -> None:
    for model in found.learned:
        of = "this log" if model.same else "a log that shares sessions with this one"
        if model.started_from is not None:
            of = f"{model.started_from}, from which its training started"
        say(f"{model.folder}: learned from {of}; train it again without the deleted sessions")
    for unclear in found.unclear:
        say(f"warning: {unclear.folder}: {unclear.reason}: may have learned from this log")
    if not found.learned:
        say(f"no {'other ' if found.unclear else ''}model in {folders} learned from this log")


def _as_json(found: "FoundModels | None") -> dict[str, Any]:
    if found is None:
        return {"models": [], "unclear_models": []}
    return {
        "models": [
            {
                "folder": str(model.folder),
                "same_log": model.same,
                "started_from": None if model.started_from is None else str(model.started_from),
            }
            for model in found.learned
        ],
        "unclear_models": [{"folder": str(model.folder), "reason": model.reason} for model in found.unclear],
    }


def _models(log: Path, folders: tuple[Path, ...], stages: Stages) -> "FoundModels | None":
    if not folders:
        return None
    # It needs torch, which takes a second to load; without models nobody should wait for it.
    from cuolr.policies.find_models import models_that_learned

    return models_that_learned(_traces(log, stages), folders)


def _traces(log: Path, stages: Stages) -> "LogTraces":
    from cuolr.policies.find_models import LogTraces

    meta = read_meta(log)
    clicks = digest_of_clicks(load_click_log(log, ids=False, stages=stages))
    return LogTraces(meta.get(IDENTITY), frozenset(identities(meta)), clicks)


def _lines(file: Path | None) -> list[str]:
    """The ids in a file, one per line."""
    if file is None:
        return []
    try:
        return [line for line in file.read_text(encoding="utf-8").splitlines() if line]
    except OSError as error:
        raise unreadable(file, error) from None
    except UnicodeDecodeError:
        raise InputError(f"{file}: expected ids in UTF-8, one per line") from None
