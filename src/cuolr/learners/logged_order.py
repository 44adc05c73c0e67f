"""The order that the log shows, as a ranker: what the logging policy knew, without a click."""

import numpy as np

from cuolr.data.normalise import Normaliser
from cuolr.policies.linear import MAX_PAIR_VALUES, LinearPolicy, draw_pairs, fit_pairs
from cuolr.types import ClickLog

PAIRS_PER_QUERY = 200
# Weight of the mean loss over pairs against the size of w: the log has no noise to guard against.
C = 100.0
HIGHEST_GRADE = 100


def fit_logged_order(log: ClickLog, normaliser: Normaliser, seed: int) -> LinearPolicy | None:
    """A ranking SVM that puts documents in the order in which they were shown, and those never shown last.

    Where a query was shown in several orders, it is the mean over its sessions that counts.

    Args:
        log: Its clicks are not looked at, so distinct lists with counts will do.
        normaliser: Fitted.
        seed: Which pairs, and which queries where they are too many.

    Returns:
        None where no document was shown above another.
    """
    rng = np.random.default_rng(seed)
    candidates = log.candidates
    queries = np.unique(log.query)
    affordable = max(1, MAX_PAIR_VALUES // (PAIRS_PER_QUERY * candidates.n_features))
    if len(queries) > affordable:
        queries = np.sort(rng.choice(queries, affordable, replace=False))
    chosen = candidates.select(queries)
    better, worse = draw_pairs(_grades(log)[candidates.rows_of(queries)], chosen.offsets, PAIRS_PER_QUERY, rng)
    if not len(better):
        return None
    scaled = normaliser.apply(chosen).features
    weights = fit_pairs(scaled[better] - scaled[worse], C)
    return LinearPolicy(weights.astype(np.float32), normaliser)


def _grades(log: ClickLog) -> np.ndarray[tuple[int], np.dtype[np.int8]]:
    """[n_documents] how high each document stood: 100 = always first, 0 = never shown."""
    row, position = np.nonzero(log.where)
    documents = log.documents[log.where]
    height = HIGHEST_GRADE * (1 - position / log.k) * log.count[row]
    total = np.bincount(documents, weights=height, minlength=log.candidates.n_documents)
    sessions = np.bincount(log.query, weights=log.count, minlength=log.candidates.n_queries)
    mean = total / np.maximum(sessions, 1)[log.candidates.query_of_document]
    return np.ceil(np.minimum(mean, HIGHEST_GRADE)).astype(np.int8)
