"""By what a log is recognised: hashes of its content."""

import hashlib

import numpy as np

from cuolr.logs.clicklog import ClickLog

# Rows that are hashed together, so that memory does not grow with the log.
ROWS_AT_A_TIME = 1 << 18


def fingerprint(log: ClickLog) -> str:
    """A hash of all that can be learned from: lists, clicks, counts and features."""
    candidates = log.candidates
    digest = hashlib.blake2b(digest_size=16)
    for values in (log.query, log.ranking, log.clicks, log.count, candidates.offsets, candidates.features):
        for start in range(0, len(values), ROWS_AT_A_TIME):
            digest.update(np.ascontiguousarray(values[start : start + ROWS_AT_A_TIME]).data)
    return digest.hexdigest()


def digest_of_clicks(log: ClickLog) -> str:
    """A hash of the sessions and clicks of each query, by which a model recognises the log that it was trained on.

    It is the same for every order of the sessions, and for the aggregated log.
    """
    clicks_of_row = log.clicks.sum(axis=1) * log.count
    counts = [np.bincount(log.query, of_row, log.candidates.n_queries) for of_row in (log.count, clicks_of_row)]
    digest = hashlib.sha256("\n".join(map(str, log.candidates.query_ids)).encode())
    digest.update(np.rint(counts).astype(np.int64).data)
    return digest.hexdigest()
