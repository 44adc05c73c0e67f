"""Small data sets and logs to test with."""

from dataclasses import replace

import numpy as np

from cuolr.logs.clicklog import ClickLog
from cuolr.logs.columns import index_dtype
from cuolr.logs.session_files import one_each
from cuolr.types import Candidates, RankingDataset

# The type of ids of sessions and users.
TEXT = np.dtypes.StringDType()


def candidates_of(*sizes: int, n_features: int = 3, seed: int = 0) -> Candidates:
    """Queries q0, q1, … of so many documents each, with random features."""
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    n_documents = int(offsets[-1])
    return Candidates(
        features=np.random.default_rng(seed).standard_normal((n_documents, n_features)).astype(np.float32),
        offsets=offsets,
        query_ids=np.array([f"q{query}" for query in range(len(sizes))]),
        document_ids=np.array([f"d{row}" for row in range(n_documents)]),
    )


def dataset_of(*sizes: int, max_grade: int = 4, seed: int = 0) -> RankingDataset:
    """The same with random grades."""
    candidates = candidates_of(*sizes, seed=seed)
    grades = np.random.default_rng(seed + 1).integers(0, max_grade + 1, candidates.n_documents)
    return RankingDataset(candidates, grades.astype(np.int8), max_grade)


def log_of(candidates: Candidates, query: list[int], ranking: list[list[int]], clicks: list[list[int]]) -> ClickLog:
    """A raw log, row by row."""
    return ClickLog(
        candidates=candidates,
        query=np.array(query, np.int32),
        ranking=np.array(ranking, np.int16),
        clicks=np.array(clicks, np.uint8),
        count=one_each(len(query)),
    )


def random_log(candidates: Candidates, sessions: int, k: int, lists_per_query: int = 2, seed: int = 0) -> ClickLog:
    """Sessions that show one of a few random lists of each query, clicked at random."""
    rng = np.random.default_rng(seed)
    lists = np.full((candidates.n_queries, lists_per_query, k), -1, index_dtype(candidates))
    for query, size in enumerate(candidates.sizes.tolist()):
        for shown in lists[query]:
            shown[: min(k, size)] = rng.permutation(size)[:k]
    queries = rng.integers(0, candidates.n_queries, sessions).astype(np.int32)
    ranking = lists[queries, rng.integers(0, lists_per_query, sessions)]
    clicks = ((rng.random((sessions, k)) < 0.3) & (ranking >= 0)).astype(np.uint8)
    return ClickLog(candidates, queries, ranking, clicks, one_each(sessions))


def full_log() -> ClickLog:
    """A raw log of 50 lists of 4 documents that has every column."""
    log = random_log(candidates_of(5, 2, 9), sessions=50, k=4)
    rng = np.random.default_rng(3)
    return replace(
        log,
        logging_propensity=np.where(log.where, 1 - rng.random(log.clicks.shape), 1).astype(np.float32),
        examination=(log.where & ((log.clicks > 0) | (rng.random(log.clicks.shape) < 0.5))).astype(np.uint8),
        timestamp=rng.integers(0, 2**40, len(log)),
        reward=np.where(log.clicks > 0, rng.exponential(size=log.clicks.shape), 0).astype(np.float32),
        page_position=np.where(log.where, 2 * np.arange(log.k), -1).astype(np.int32),
        randomised=rng.random(len(log)) < 0.3,
        session_id=np.array([f"session {number:02}" for number in range(len(log))], TEXT),
        user_id=np.array([f"user {number % 7}" if number % 3 else "" for number in range(len(log))], TEXT),
        context={"device": rng.choice(["phone", "tablet"], len(log)), "columns": rng.integers(1, 3, len(log))},
    )


def assert_same_log(left: ClickLog, right: ClickLog) -> None:
    """All that the logs hold is the same, to the bit and the type."""
    assert left.aggregated == right.aggregated
    assert left.columns.keys() == right.columns.keys()
    for name, values in left.columns.items():
        np.testing.assert_array_equal(values, right.columns[name], err_msg=name, strict=True)
    for name in ("features", "offsets", "query_ids"):
        np.testing.assert_array_equal(getattr(left.candidates, name), getattr(right.candidates, name), err_msg=name)
    assert (left.candidates.document_ids is None) == (right.candidates.document_ids is None)
    if left.candidates.document_ids is not None and right.candidates.document_ids is not None:
        np.testing.assert_array_equal(left.candidates.document_ids, right.candidates.document_ids)
