"""Evaluating ranked lists: all measures on a large data set, and nDCG compared with scikit-learn, query by query."""

import time
from collections.abc import Sequence

import numpy as np
from sklearn.metrics import ndcg_score

from benchmarks.table import Row
from cuolr.evaluation.measures import GradedLists, Measure, measure_names
from cuolr.policies.policy import rank_by_score
from cuolr.types import Candidates, Doubles, Floats, RankingDataset

QUERIES, DOCUMENTS, TOP = 10_000, 125, 10
GRADES = (0.52, 0.32, 0.13, 0.02, 0.01)  # about as often as in MSLR-WEB10K
CLICK_MODELS = ("pbm", "cascade", "dcm", "ccm", "ubm")
OF_RELEVANCE = [name for name in measure_names() if ":" not in name]
ALL = [f"{name}@{k}" for name in OF_RELEVANCE for k in (3, 5, 10)] + [f"clicks:{name}@10" for name in CLICK_MODELS]
PEER_QUERIES, PEER_MEASURES = 500, ("ndcg@3", "ndcg@5", "ndcg@10")
REPEATS = 3


def run() -> list[Row]:
    """Time all measures from scores to values per query, and some of them against scikit-learn."""
    dataset, scores = _random_queries()
    seconds = min(_measured(dataset, scores, ALL)[1] for _ in range(REPEATS))
    few = dataset.select(np.arange(PEER_QUERIES))
    few_scores = scores[: few.candidates.n_documents]
    values, own_seconds = min((_measured(few, few_scores, PEER_MEASURES) for _ in range(REPEATS)), key=lambda m: m[1])
    peer_values, peer_seconds = _measured_by_scikit_learn(few, few_scores)
    if not np.allclose(values, peer_values):
        raise AssertionError("nDCG differs from scikit-learn's")
    ratio = peer_seconds / own_seconds
    return [
        Row(f"measures: {len(ALL)} of 10,000 queries × 125 documents", seconds, "CPU s", "< 1", seconds < 1),
        Row("measures: speed of nDCG over scikit-learn, query by query", ratio, "×", "≥ 20", ratio >= 20),
    ]


def _random_queries() -> tuple[RankingDataset, Floats]:
    rng = np.random.default_rng(1)
    documents = QUERIES * DOCUMENTS
    candidates = Candidates(
        features=np.zeros((documents, 1), np.float32),
        offsets=DOCUMENTS * np.arange(QUERIES + 1),
        query_ids=np.arange(QUERIES).astype(np.str_),
    )
    grades = rng.choice(len(GRADES), documents, p=GRADES).astype(np.int8)
    return RankingDataset(candidates, grades, len(GRADES) - 1), rng.random(documents, np.float32)


def _measured(dataset: RankingDataset, scores: Floats, measures: Sequence[str]) -> tuple[Doubles, float]:
    """[measures, n_queries] and the CPU seconds it took, sorting included."""
    start = time.process_time()
    lists = GradedLists.of(dataset, rank_by_score(scores, dataset.candidates.offsets, TOP))
    values = np.stack([Measure.parse(measure).per_query(lists, "zero") for measure in measures])
    return values, time.process_time() - start


def _measured_by_scikit_learn(dataset: RankingDataset, scores: Floats) -> tuple[Doubles, float]:
    """The same for `PEER_MEASURES`; gains are 2^r − 1, since scikit-learn's own are linear."""
    gains = (np.exp2(dataset.relevance, dtype=np.float64) - 1).reshape(-1, 1, DOCUMENTS)
    by_query = scores.reshape(-1, 1, DOCUMENTS)
    cutoffs = [Measure.parse(measure).cutoff for measure in PEER_MEASURES]
    start = time.process_time()
    values = [[ndcg_score(gain, score, k=k) for gain, score in zip(gains, by_query, strict=True)] for k in cutoffs]
    return np.array(values), time.process_time() - start
