"""The clicks that a ranking would get, measured on lists that were shown in random order.

In a list of n documents in uniformly random order, each document stands at each position with probability 1/n. The
clicks of the sessions in which a document happens to stand where the ranking would put it, times n, are then an
unbiased estimate of the clicks that it would get there: item-position matching (Li et al. 2018), with no model of
clicks.

V = Σ_k n · 1[d_k = d_k of the ranking] · c_k for each session, where both orders are of the documents that were shown.

It assumes that a click depends on the document and on its position, and not on the other documents of the list. Under
click models in which users stop after a click, it is an approximation.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cuolr.logs.clicklog import ClickLog
from cuolr.policies.policy import RankingPolicy, ScoringPolicy
from cuolr.policies.sequential_policy import SequentialPolicy
from cuolr.types import Candidates, Doubles, Ints

# Number of lists that are ranked at a time, by policies that do not score documents independently.
LISTS_AT_A_TIME = 4_096


def matched_values(order: Ints, lists: ClickLog, values: npt.NDArray[Any]) -> Doubles:
    """[M] the estimated sum of the values of each session, had its documents been in this order.

    Args:
        order: [M, K] the position at which each list shows the document that the ranking puts at k.
        lists: Lists in random order.
        values: [M, K] clicks, or rewards; 0 where nothing was shown.
    """
    matches = (order == np.arange(lists.k)) & lists.where
    sums: Doubles = (matches * values).sum(axis=1) * lists.where.sum(axis=1)
    return sums.astype(np.float64)


def order_by_policy(policy: RankingPolicy, lists: ClickLog) -> Ints:
    """[M, K] the positions of each list in the order of a policy; ties are broken by the documents, not by the list."""
    columns = _by_document(lists)
    queries = np.unique(lists.query).astype(np.int64)
    positions = np.broadcast_to(np.arange(lists.k), lists.ranking.shape)
    sorted_lists = replace(lists, ranking=np.take_along_axis(lists.ranking, columns, axis=1))
    return np.take_along_axis(columns, model_order(policy, sorted_lists, queries, positions), axis=1)


def order_by_score(scores: Doubles, lists: ClickLog) -> Ints:
    """[M, K] the positions of each list in the order of scores [M, K]; ties are broken by the documents."""
    columns = _by_document(lists)
    in_order = np.take_along_axis(np.where(lists.where, -scores, np.inf), columns, axis=1)
    return np.take_along_axis(columns, np.argsort(in_order, axis=1, kind="stable"), axis=1)


def model_order(policy: RankingPolicy, lists: ClickLog, queries: Ints, positions: Ints) -> Ints:
    """[L, K] the positions of each list, in the order in which the model ranks the documents shown there.

    Args:
        policy: The model.
        lists: L lists.
        queries: The queries of these lists.
        positions: [L, K] the filled positions of each list from the top, then the others.
    """
    candidates = lists.candidates
    if isinstance(policy, ScoringPolicy):  # the score of a document does not depend on the list
        scores = np.zeros(candidates.n_documents)
        scores[candidates.rows_of(queries)] = policy.score(candidates.select(queries))
        return np.argsort(np.where(lists.where, -scores[lists.documents], np.inf), axis=1, kind="stable")
    if isinstance(policy, SequentialPolicy) and policy.normaliser.kind == "query-min-max":
        # Features are scaled by all candidates of a query, not by the documents of one list.
        scaled = policy.normaliser.apply(policy.normaliser.as_fitted(candidates, policy.n_features))
        policy, lists = policy.of_scaled(), replace(lists, candidates=scaled)
    order = positions.copy()
    for start in range(0, len(lists), LISTS_AT_A_TIME):
        part = slice(start, start + LISTS_AT_A_TIME)
        places = policy.rank(_lists_as_queries(lists.select(part)), lists.k)
        by_model = np.take_along_axis(positions[part], np.maximum(places, 0), axis=1)
        order[part] = np.where(places >= 0, by_model, positions[part])
    return order


def _by_document(lists: ClickLog) -> Ints:
    """[M, K] the positions of each list, sorted by the candidate index of their documents; empty positions last."""
    return np.argsort(np.where(lists.where, lists.ranking, np.iinfo(np.int64).max), axis=1, kind="stable")


def _lists_as_queries(lists: ClickLog) -> Candidates:
    """One query per list, with the shown documents as candidates."""
    candidates, where = lists.candidates, lists.where
    return Candidates(
        candidates.features[lists.documents[where]],
        np.concatenate([[0], np.cumsum(where.sum(axis=1))]),
        candidates.query_ids[lists.query],
        feature_names=candidates.feature_names,
    )
