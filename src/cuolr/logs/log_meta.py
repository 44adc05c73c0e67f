"""The description of a log, `meta.json`, with a hash of each file of its folder; and what identifies a log.

The hashes show damage, not origin: whoever can write the folder can write new ones.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cuolr.errors import InputError, does_not_match, problems_in
from cuolr.files import check_hash, content_hash, is_verifying, part_of, size_of, versions
from cuolr.json_files import Shape, check_shape, read_json
from cuolr.logs.clicklog import ClickLog
from cuolr.progress import Stages, no_stages

META_FILE = "meta.json"
# Logs of format 1 may lack hashes.
FORMAT, WITHOUT_HASHES = 2, 1
# Entries: the hash of each other file by its name, and that of all other entries.
FILES, OWN_HASH = "files", "sha256"
# Entries of the source of a log.
MERGED, DELETIONS, COUNTED = "merged", "deletions", "counted"
IDENTITY = "sessions_sha256"
# What is read of the description, beside what `_read` needs.
SHAPE: Shape = {
    "sessions": int,
    "rows": int,
    IDENTITY: str,
    "source": {MERGED: list, DELETIONS: list, COUNTED: {}, "ids_hashed_with": str},
}


def write_meta(folder: Path, facts: Mapping[str, Any], source: Mapping[str, Any]) -> None:
    """Describe a log whose other files are written.

    Args:
        folder: The folder.
        facts: The form of the log.
        source: Where it comes from, as JSON types.
    """
    names = sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())
    hashes = {name: content_hash(folder / name) for name in names}
    meta = {"format": FORMAT, **facts, "versions": versions(), "source": dict(source), FILES: hashes}
    meta["sessions_sha256"] = hashes["sessions.parquet"]
    meta[OWN_HASH] = content_hash(meta)
    (folder / META_FILE).write_text(json.dumps(meta, indent=2) + "\n", encoding="utf-8")


def read_meta(folder: Path) -> dict[str, Any]:
    """The provenance of a log. It is not part of `ClickLog`: a learner must not know the click model."""
    return {name: value for name, value in _read(folder).items() if name not in (FILES, OWN_HASH)}


def check_log_files(folder: Path, names: Collection[str], stages: Stages = no_stages, required: bool = True) -> None:
    """Raise if a file of a log leads out of its folder, or does not match its hash.

    Args:
        folder: A log.
        names: The files that are to be read; those that are not there are left out.
        stages: Receives the bytes that were compared so far.
        required: Whether a file must have a hash; people may put others into the folder.
    """
    there = [name for name in names if part_of(folder, name).exists() and name != META_FILE]
    hashes = _read(folder).get(FILES)
    if hashes is None or not is_verifying():
        return
    if not required:
        there = [name for name in there if name in hashes]
    progress = stages(f"checking {folder.name}", sum(size_of(folder / name) for name in there))
    for name in there:
        check_hash(folder / name, hashes.get(name), progress)


def check_file_beside(folder: Path, name: str) -> None:
    """Raise if a file that was written with a log does not match its hash; people may put others into the folder."""
    if (folder / META_FILE).is_file():
        check_log_files(folder, [name], required=False)


def check_folder(folder: Path) -> None:
    """Raise if there is no such folder."""
    if not folder.is_dir():
        if not folder.exists():
            raise InputError(f"{folder}: folder not found")
        raise InputError(
            f"{folder}: expected the folder of a log, found a file; `cuolr import-log` makes one from a table"
        )


def _read(folder: Path) -> dict[str, Any]:
    check_folder(folder)
    file = part_of(folder, META_FILE)
    meta = read_json(file)
    if not isinstance(meta, dict) or type(meta.get("format")) is not int:
        raise InputError(f"{file}: not the description of a click log; expected an object with 'format'")
    if meta["format"] > FORMAT:
        raise InputError(f"{file}: format {meta['format']} needs a newer cuolr; this version reads up to {FORMAT}")
    _check_own_hash(file, meta)
    if type(meta.get("aggregated")) is not bool:
        raise InputError(f"{file}: expected 'aggregated' to be true or false, found {meta.get('aggregated')!r}")
    if type(meta.setdefault("counted", False)) is not bool or (meta["aggregated"] and meta["counted"]):
        raise InputError(f"{file}: expected 'counted' to be true or false, and not with 'aggregated'")
    of_documents = meta.setdefault("of_documents", False)
    if type(of_documents) is not bool or (of_documents and not (meta["counted"] and meta.get("k") == 1)):
        raise InputError(f"{file}: expected 'of_documents' to be true or false, and true only if 'counted', with 'k' 1")
    if type(meta.get("k")) is not int or meta["k"] < 1:
        raise InputError(f"{file}: expected 'k' to be the number of positions of a list, found {meta.get('k')!r}")
    if meta.get("source", {}) is None:
        meta["source"] = {}
    with problems_in(file):
        check_shape(meta, SHAPE)
    return meta


def _check_own_hash(file: Path, meta: dict[str, Any]) -> None:
    if not is_verifying() or (meta["format"] <= WITHOUT_HASHES and OWN_HASH not in meta and FILES not in meta):
        return
    others = {name: value for name, value in meta.items() if name != OWN_HASH}
    if meta.get(OWN_HASH) != content_hash(others) or not isinstance(meta.get(FILES), dict):
        raise does_not_match(file)


def fingerprint(log: ClickLog) -> str:
    """A hash of everything a learner uses: lists, clicks, rewards, context, counts and features."""
    candidates = log.candidates
    optional = [*([] if log.reward is None else [log.reward]), *log.context.values()]
    if log.last_click is not None and log.page_position is not None:
        optional += [log.last_click, log.page_position]
    return content_hash(
        log.query, log.ranking, log.clicks, log.count, candidates.offsets, candidates.features, *optional
    )


def digest_of_clicks(log: ClickLog) -> str:
    """A hash of the sessions and clicks of each query, by which a model recognises its training log.

    It does not depend on the order of the sessions, on aggregation, or on counting.
    """
    clicks_of_row = log.clicks.sum(axis=1) * log.count
    counts = [np.bincount(log.query, of_row, log.candidates.n_queries) for of_row in (log.session_count, clicks_of_row)]
    return content_hash("\n".join(map(str, log.candidates.query_ids)), np.rint(counts).astype(np.int64))


def described(folder: Path, meta: Mapping[str, Any]) -> dict[str, Any]:
    """What the source of a new log records of an old one; of the logs that it comes from, one after the other.

    Nested records would become deeper with each merge, and twice as many with each deletion.

    Args:
        folder: The old log.
        meta: Its `meta.json`.
    """
    earlier = [record for record in _records(meta) if record.get(IDENTITY) != meta.get(IDENTITY)]
    return {**_known(meta), "folder": str(folder), "source": {MERGED: earlier} if earlier else {}}


def deletions(folder: Path, meta: Mapping[str, Any], deleted: Mapping[str, int]) -> list[dict[str, Any]]:
    """What the source of a log records of the deletions from it, with the latest.

    Args:
        folder: The log.
        meta: Its `meta.json` before the latest.
        deleted: What was deleted.
    """
    earlier = [record for record in meta.get("source", {}).get(DELETIONS) or [] if isinstance(record, Mapping)]
    # Where earlier versions of cuolr also recorded what the log came from then, which its source still says.
    without = [{name: value for name, value in record.items() if name != "source"} for record in earlier]
    return [*without, {**_known(meta), "folder": str(folder), "deleted": dict(deleted)}]


def identities(meta: Mapping[str, Any]) -> set[str]:
    """The identities of a log and of all logs that its sessions come from.

    Args:
        meta: Its `meta.json`, or what `described` recorded of it.
    """
    return {record[IDENTITY] for record in (_known(meta), *_records(meta)) if IDENTITY in record}


def _records(meta: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What is known of the logs that a log comes from, each once, without what they come from."""
    found: dict[Any, dict[str, Any]] = {}
    waiting: list[Any] = [meta]
    for record in waiting:  # which grows
        source = record.get("source") if isinstance(record, Mapping) else None
        if isinstance(source, Mapping):
            lists = [source.get(name) for name in (MERGED, DELETIONS)]
            waiting += [earlier for of_kind in lists if isinstance(of_kind, list) for earlier in of_kind]
            waiting.append(source.get(COUNTED))
        if isinstance(record, Mapping) and record is not meta:
            known = _known(record)
            found.setdefault(known.get(IDENTITY, known.get("folder")), known)
    return list(found.values())


def _known(record: Mapping[str, Any]) -> dict[str, Any]:
    """The entries of a log or a record of it that tell which log it is; those of other types are left out."""
    types = {"folder": str, "sessions": int, IDENTITY: str}
    return {name: record[name] for name, kind in types.items() if type(record.get(name)) is kind}


def made_from_one(folders: Sequence[Path], metas: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The folders of logs that are made from a log that one before them is made from, too.

    Args:
        folders: The logs.
        metas: The `meta.json` of each.
    """
    known: set[str] = set()
    found: list[str] = []
    for folder, meta in zip(folders, metas, strict=True):
        if known & identities(meta):
            found.append(str(folder))
        known |= identities(meta)
    return tuple(found)
