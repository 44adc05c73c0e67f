"""Hashes that identify a log by its content."""

import numpy as np

from cuolr.files import content_hash
from cuolr.logs.clicklog import ClickLog


def fingerprint(log: ClickLog) -> str:
    """A hash of everything a learner uses: lists, clicks, rewards, context, counts and features."""
    candidates = log.candidates
    optional = [*([] if log.reward is None else [log.reward]), *log.context.values()]
    return content_hash(
        log.query, log.ranking, log.clicks, log.count, candidates.offsets, candidates.features, *optional
    )


def digest_of_clicks(log: ClickLog) -> str:
    """A hash of the sessions and clicks of each query, by which a model recognises its training log.

    It does not depend on the order of the sessions, or on aggregation.
    """
    clicks_of_row = log.clicks.sum(axis=1) * log.count
    counts = [np.bincount(log.query, of_row, log.candidates.n_queries) for of_row in (log.count, clicks_of_row)]
    return content_hash("\n".join(map(str, log.candidates.query_ids)), np.rint(counts).astype(np.int64))
