"""The order that the log shows, as rankers: what the logging policy knew, without a click."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from cuolr.data.normalise import Normaliser
from cuolr.logs.clicklog import ClickLog
from cuolr.policies.lambdamart_policy import LambdaMartPolicy, grow_ranking_trees
from cuolr.policies.linear_policy import MAX_PAIR_VALUES, LinearPolicy, draw_pairs, fit_pairs
from cuolr.policies.policy import rank_by_score
from cuolr.types import Doubles, IntegerArray, Ints

# Documents that are scored together.
DOCUMENTS_AT_A_TIME = 1 << 16
PAIRS_PER_QUERY = 200
# Weight of the mean loss over pairs against the size of w: the log has no noise to guard against.
C = 100.0
HIGHEST_GRADE = 100
# A linear ranker that agrees with the log to this is the logger, near enough; with a ranking SVM for logger it does.
GOOD_IMITATION = 0.95
# Queries by which that is seen, at most.
QUERIES_TO_SEE = 500
# Of the trees that imitate another logger.
TREES = {"num_threads": 1, "num_leaves": 15, "learning_rate": 0.1, "min_data_in_leaf": 20, "feature_fraction": 0.5}
NUMBER_OF_TREES = 200
# Documents that each is grown from, at most, which bounds the time to some 15 seconds.
MAX_TREE_DOCUMENTS = 50_000


def linear_scores(features: Tensor, ranker: LinearPolicy) -> Doubles:
    """[n] w · x of scaled documents [n, F], in double precision."""
    parts = torch.split(features, DOCUMENTS_AT_A_TIME)
    return np.concatenate([np.einsum("nf,f->n", part.double().numpy(), ranker.weights) for part in parts])


@dataclass(frozen=True, eq=False)
class Imitation:
    """A ranker that puts documents in the order in which the log shows them; it learns no more."""

    ranker: LinearPolicy | LambdaMartPolicy

    def score(self, features: Tensor) -> Doubles:
        """[n] of scaled documents [n, F]."""
        if isinstance(self.ranker, LinearPolicy):
            return linear_scores(features, self.ranker)
        return self.ranker.score_scaled(features.numpy()).astype(np.float64)

    def policy(self) -> LinearPolicy | LambdaMartPolicy:
        """The ranker."""
        return self.ranker


@dataclass(frozen=True)
class LoggedOrder:
    """What the logging policy knew.

    Attributes:
        imitations: One for each part of the queries, that did not learn from it; a linear one is the same for all.
            Empty where no document was shown above another.
        part: [n_queries] the part of each query; None = that does not matter.
    """

    imitations: Sequence[Imitation] = ()
    part: Ints | None = None

    def scores(self, features: Tensor) -> Doubles:
        """[n] of scaled documents, with mean 0 and standard deviation 1; zeros where nothing is known."""
        different = list(dict.fromkeys(self.imitations))
        if not different:
            return np.zeros(len(features))
        scores = np.sum([imitation.score(features) for imitation in different], axis=0)
        standard: Doubles = (scores - scores.mean()) / max(float(scores.std()), 1e-12)
        return standard


def imitate_logger(lists: ClickLog, normaliser: Normaliser, seed: int, parts: int) -> LoggedOrder:
    """A linear ranker where that agrees with the log; else trees, if they agree more on queries new to them.

    Args:
        lists: Their clicks are not looked at, so distinct lists with counts will do.
        normaliser: Fitted.
        seed: Of all that is drawn.
        parts: Of the queries.
    """
    linear = fit_linear(lists, normaliser, seed)
    if linear is None:
        return LoggedOrder()
    by_linear = LoggedOrder([Imitation(linear)] * parts)
    queries = np.random.default_rng(seed).permutation(np.unique(lists.query))
    if len(queries) < parts or agreement(linear, lists, queries[:QUERIES_TO_SEE]) >= GOOD_IMITATION:
        return by_linear
    part = np.zeros(lists.candidates.n_queries, np.int64)
    part[queries] = np.arange(len(queries)) % parts
    trees = [fit_trees(lists, queries[part[queries] != i], normaliser, seed + i) for i in range(parts)]
    new = [queries[part[queries] == i][: QUERIES_TO_SEE // parts] for i in range(parts)]
    of_trees = np.mean([agreement(ranker, lists, some) for ranker, some in zip(trees, new, strict=True)])
    of_linear = np.mean([agreement(linear, lists, some) for some in new])
    return LoggedOrder([Imitation(ranker) for ranker in trees], part) if of_trees > of_linear else by_linear


def agreement(ranker: LinearPolicy | LambdaMartPolicy, lists: ClickLog, queries: IntegerArray) -> float:
    """nDCG@K of a ranker, its gain how high the log shows a document; mean over queries."""
    candidates = lists.candidates.select(queries)
    height = _grades(lists)[lists.candidates.rows_of(queries)].astype(np.float64)
    discount = 1 / np.log2(np.arange(lists.k) + 2)

    def dcg(ranking: Ints) -> Doubles:
        documents = candidates.offsets[:-1, None] + np.maximum(ranking, 0)
        gains: Doubles = (height[documents] * (ranking >= 0)) @ discount
        return gains

    ideal = dcg(rank_by_score(height, candidates.offsets, lists.k))
    return float((dcg(ranker.rank(candidates, lists.k)) / np.maximum(ideal, 1e-9)).mean())


def fit_trees(lists: ClickLog, queries: IntegerArray, normaliser: Normaliser, seed: int) -> LambdaMartPolicy:
    """LambdaMART that puts documents of some queries in the order in which they were shown, those never shown last."""
    candidates = lists.candidates
    affordable = int((np.cumsum(candidates.sizes[queries]) <= MAX_TREE_DOCUMENTS).sum())
    queries = np.sort(queries[: max(1, affordable)])
    chosen = normaliser.apply(candidates.select(queries))
    grades = _grades(lists)[candidates.rows_of(queries)]
    model = grow_ranking_trees(chosen.features, grades, chosen.sizes, {**TREES, "seed": seed}, NUMBER_OF_TREES)
    return LambdaMartPolicy(model, 1, normaliser)


def fit_linear(log: ClickLog, normaliser: Normaliser, seed: int) -> LinearPolicy | None:
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
