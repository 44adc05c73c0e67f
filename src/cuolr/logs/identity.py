"""What identifies a log: hashes of its content, and the logs that its sessions come from."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cuolr.files import content_hash
from cuolr.logs.clicklog import ClickLog

# Entries of the source of a log.
MERGED, DELETIONS, COUNTED = "merged", "deletions", "counted"
IDENTITY = "sessions_sha256"


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
    """What the source of a new log records of an old one.

    Args:
        folder: The old log.
        meta: Its `meta.json`.
    """
    source = meta.get("source", {})
    earlier = {name: source[name] for name in (MERGED, DELETIONS, COUNTED) if name in source}
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
        counted = [source[COUNTED]] if COUNTED in source else []
        for earlier in (*source.get(MERGED, ()), *source.get(DELETIONS, ()), *counted):
            found |= identities(earlier)
    return found
