"""Where the sessions of a log come from: the logs that it was merged from, and itself before a deletion."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

# Entries of the source of a log.
MERGED, DELETIONS = "merged", "deletions"
IDENTITY = "sessions_sha256"


def described(folder: Path, meta: Mapping[str, Any]) -> dict[str, Any]:
    """What the source of a new log records of an old one.

    Args:
        folder: The old log.
        meta: Its `meta.json`.
    """
    source = meta.get("source", {})
    earlier = {name: source[name] for name in (MERGED, DELETIONS) if name in source}
    identity = {IDENTITY: meta[IDENTITY]} if IDENTITY in meta else {}
    return {"folder": str(folder), "sessions": meta.get("sessions"), **identity, "source": earlier}


def identities(meta: Mapping[str, Any]) -> set[str]:
    """The identities of a log and of all logs that its sessions come from.

    Args:
        meta: Its `meta.json`, or what `described` recorded of it.
    """
    found = {meta[IDENTITY]} if isinstance(meta.get(IDENTITY), str) else set()
    source = meta.get("source")
    if isinstance(source, Mapping):
        for earlier in (*source.get(MERGED, ()), *source.get(DELETIONS, ())):
            found |= identities(earlier)
    return found
