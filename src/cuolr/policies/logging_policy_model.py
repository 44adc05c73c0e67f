"""Behaviour cloning of the logging policy: rankers trained on the order in which a log shows documents."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from cuolr.data.normalise import Normaliser
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.page_positions import page_width
from cuolr.logs.scaled_documents import scaled_features
from cuolr.policies.linear_policy import MAX_PAIR_VALUES, LinearPolicy, draw_pairs, fit_ranking_svm
from cuolr.policies.policy import rank_by_score
from cuolr.policies.trees_policy import TreesPolicy, grow_ranking_trees
from cuolr.progress import Progress, Stages, no_progress, no_stages
from cuolr.types import Doubles, Floats, IntegerArray, Ints

# Number of documents scored at a time.
DOCUMENTS_AT_A_TIME = 1 << 13
# Rows of the log that are looked at together.
ROWS_AT_A_TIME = 1 << 17
PAIRS_PER_QUERY = 200
# Weight of the mean loss over pairs against |w|²; high, because a deterministic logging policy has no noise: 100 gives
# another top 10 for 7 % of the documents on 300 queries of `web10k-like`, where this gives 3 %.
C = 10_000.0
# The grade of a document that is always shown first.
HIGHEST_GRADE = 100
# Agreement with the log above which a linear model is kept; reached if the logging policy is a ranking SVM.
MIN_LINEAR_AGREEMENT = 0.95
# Maximum number of queries used to measure agreement.
MAX_AGREEMENT_QUERIES = 500
# LightGBM's parameters for logging policies that are not linear.
LAMBDAMART = {"num_threads": 1, "num_leaves": 15, "learning_rate": 0.1, "min_data_in_leaf": 20, "feature_fraction": 0.5}
NUMBER_OF_TREES = 200
# Maximum number of training documents of each LambdaMART model, which takes about 15 seconds.
MAX_LAMBDAMART_DOCUMENTS = 50_000

# Name of the stage.
CLONING = "fitting the logging policy"


@dataclass(frozen=True, eq=False)
class ClonedRanker:
    """A ranker that reproduces the shown order; it is fitted once, before training.

    Attributes:
        ranker: The linear or LambdaMART ranker.
    """

    ranker: LinearPolicy | TreesPolicy

    def score(self, features: Floats) -> Doubles:
        """[n] the scores of scaled documents [n, F]; those of a linear ranker are in double precision."""
        if isinstance(self.ranker, TreesPolicy):
            return self.ranker.score_scaled(features).astype(np.float64)
        starts = range(0, len(features), DOCUMENTS_AT_A_TIME)
        parts = (features[start : start + DOCUMENTS_AT_A_TIME].astype(np.float64) for start in starts)
        return np.concatenate([np.einsum("nf,f->n", part, self.ranker.weights) for part in parts])

    def policy(self) -> LinearPolicy | TreesPolicy:
        """The ranker."""
        return self.ranker


@dataclass(frozen=True)
class LoggingPolicyModel:
    """A model of the logging policy, cross-fitted over queries.

    Attributes:
        rankers: One per fold, trained without the fold's queries; a linear one is the same for all folds. Empty if no
            document was shown above another.
        fold: [n_queries] the fold of each query; None = one ranker is used for all folds.
    """

    rankers: Sequence[ClonedRanker] = ()
    fold: Ints | None = None

    @classmethod
    def fit(cls, lists: ClickLog, normaliser: Normaliser, seed: int, folds: int, stages: Stages = no_stages) -> Self:
        """Behaviour cloning: a ranking SVM on the shown order, or LambdaMART if it agrees better with the log.

        LambdaMART is tried if the agreement of the linear model with the log is below `MIN_LINEAR_AGREEMENT`, and kept
        if it agrees better on queries that it was not trained on.

        Args:
            lists: The log, raw, counted or aggregated; clicks are not used.
            normaliser: A fitted normaliser.
            seed: Seed of the folds, the samples and LightGBM.
            folds: Number of folds.
            stages: Receives the progress.
        """
        stages(CLONING, None)
        linear = clone_linear(lists, normaliser, seed)
        if linear is None:
            return cls()
        one_for_all = cls([ClonedRanker(linear)] * folds)
        queries = np.random.default_rng(seed).permutation(np.unique(lists.query))
        if len(queries) < folds or agreement(linear, lists, queries[:MAX_AGREEMENT_QUERIES]) >= MIN_LINEAR_AGREEMENT:
            return one_for_all
        fold = np.zeros(lists.candidates.n_queries, np.int64)
        fold[queries] = np.arange(len(queries)) % folds
        progress = stages(CLONING, folds * NUMBER_OF_TREES)
        cross_fitted = [
            clone_lambdamart(lists, queries[fold[queries] != i], normaliser, seed + i, progress) for i in range(folds)
        ]
        of_other_folds = [queries[fold[queries] == i][: MAX_AGREEMENT_QUERIES // folds] for i in range(folds)]
        of_lambdamart = np.mean([agreement(r, lists, new) for r, new in zip(cross_fitted, of_other_folds, strict=True)])
        of_linear = np.mean([agreement(linear, lists, new) for new in of_other_folds])
        return cls([ClonedRanker(r) for r in cross_fitted], fold) if of_lambdamart > of_linear else one_for_all

    def scores(self, parts: Iterable[Floats]) -> Doubles:
        """[n] the standardised scores of scaled documents [n, F], given in parts; zeros if there is no model."""
        distinct = list(dict.fromkeys(self.rankers))
        if not distinct:
            return np.zeros(sum(map(len, parts)))
        scores = np.concatenate([np.sum([ranker.score(part) for ranker in distinct], axis=0) for part in parts])
        standardised: Doubles = (scores - scores.mean()) / max(float(scores.std()), 1e-12)
        return standardised


def agreement(ranker: LinearPolicy | TreesPolicy, lists: ClickLog, queries: IntegerArray) -> float:
    """nDCG@K of a ranker, with the mean height at which the log shows a document as its gain; mean over queries."""
    candidates = lists.candidates.select(queries)
    height = _grades(lists)[lists.candidates.rows_of(queries)].astype(np.float64)
    k = _positions(lists)
    discount = 1 / np.log2(np.arange(k) + 2)

    def dcg(ranking: Ints) -> Doubles:
        documents = candidates.offsets[:-1, None] + np.maximum(ranking, 0)
        gains: Doubles = (height[documents] * (ranking >= 0)) @ discount
        return gains

    ideal = dcg(rank_by_score(height, candidates.offsets, k))
    return float((dcg(ranker.rank(candidates, k)) / np.maximum(ideal, 1e-9)).mean())


def clone_lambdamart(
    lists: ClickLog, queries: IntegerArray, normaliser: Normaliser, seed: int, progress: Progress = no_progress
) -> TreesPolicy:
    """LambdaMART trained on the shown order of these queries, with documents that were never shown last."""
    candidates = lists.candidates
    affordable = int((np.cumsum(candidates.sizes[queries]) <= MAX_LAMBDAMART_DOCUMENTS).sum())
    queries = np.sort(queries[: max(1, affordable)])
    rows = candidates.rows_of(queries)
    used = np.zeros(candidates.n_documents, np.bool_)
    used[rows] = True
    features = normaliser.natively(scaled_features(candidates, normaliser, used)[:-1])
    grades, parameters = _grades(lists)[rows], {**LAMBDAMART, "seed": seed}
    trees = grow_ranking_trees(features, grades, candidates.sizes[queries], parameters, NUMBER_OF_TREES, progress)
    return TreesPolicy(trees, 1, normaliser)


def clone_linear(log: ClickLog, normaliser: Normaliser, seed: int) -> LinearPolicy | None:
    """A ranking SVM trained on the shown order, with documents that were never shown last.

    If a query was shown in several orders, the mean over its sessions is used.

    Args:
        log: The log, raw or aggregated; clicks are not used.
        normaliser: A fitted normaliser.
        seed: Seed of the sample of pairs, and of queries if there are too many.

    Returns:
        The ranker; None if no document was shown above another.
    """
    rng = np.random.default_rng(seed)
    candidates = log.candidates
    queries = np.unique(log.query)
    affordable = max(1, MAX_PAIR_VALUES // (PAIRS_PER_QUERY * (candidates.n_features + normaliser.n_indicators)))
    if len(queries) > affordable:
        queries = np.sort(rng.choice(queries, affordable, replace=False))
    documents = candidates.rows_of(queries)
    offsets = np.concatenate([[0], np.cumsum(candidates.sizes[queries])])
    better, worse = draw_pairs(_grades(log)[documents], offsets, PAIRS_PER_QUERY, rng)
    if not len(better):
        return None
    # Only the documents of a pair, which many are not.
    rows, place = np.unique(np.concatenate([better, worse]), return_inverse=True)
    used = np.zeros(candidates.n_documents, np.bool_)
    used[documents[rows]] = True
    scaled = scaled_features(candidates, normaliser, used)[:-1]
    weights = fit_ranking_svm(scaled, place[: len(better)], place[len(better) :], C)
    return LinearPolicy(weights.astype(np.float32), normaliser)


def _grades(log: ClickLog) -> np.ndarray[tuple[int], np.dtype[np.int8]]:
    """[n_documents] the mean height at which each document was shown: 100 = always first, 0 = never shown."""
    positions, total = _positions(log), np.zeros(log.candidates.n_documents)
    for start in range(0, len(log), ROWS_AT_A_TIME):
        part = log.select(slice(start, start + ROWS_AT_A_TIME))
        row, column = np.nonzero(part.where)
        position = part.page_position[row, column] if part.of_documents and part.page_position is not None else column
        height = HIGHEST_GRADE * (1 - position / positions) * part.count[row]
        np.add.at(total, part.documents[row, column], height)
    sessions = np.bincount(log.query, weights=log.session_count, minlength=log.candidates.n_queries)
    mean = total / np.maximum(sessions, 1)[log.candidates.query_of_document]
    return np.ceil(np.minimum(mean, HIGHEST_GRADE)).astype(np.int8)


def _positions(log: ClickLog) -> int:
    """The number of positions of a list; of documents, down to the last one that was shown."""
    return page_width(log) if log.of_documents else log.k
