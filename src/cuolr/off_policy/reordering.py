"""Estimates the clicks or rewards of each logged list, re-ordered by the model, under the estimated examination.

A document at position k gets e_k · α̂ clicks per session: e_k the mean expected examinations of position k in the log,
or in the sessions of the same level of context, and α̂ its examination-corrected click rate. Each list keeps its
documents, so no click rates of documents that were never shown are needed. If the log has rewards, α̂ is the
examination-corrected rate of rewards: a reward needs a click, and a click an examination, so that its mean is
examination times a rate of the document, too.
"""

from dataclasses import replace

import numpy as np

from cuolr.logs.clicklog import ClickLog
from cuolr.logs.counts import ClickCounts
from cuolr.policies.policy import RankingPolicy, ScoringPolicy
from cuolr.policies.sequential_policy import SequentialPolicy
from cuolr.progress import Stages, unseen_stages
from cuolr.types import Candidates, Doubles, Ints

# Number of lists that are ranked at a time, by policies that do not score documents independently.
LISTS_AT_A_TIME = 4_096


def rewards_by_query(
    policy: RankingPolicy,
    counts: ClickCounts,
    expected_examinations: Doubles,
    queries: Ints,
    stages: Stages = unseen_stages,
) -> tuple[Doubles, Doubles]:
    """Expected clicks, or rewards if the log has them, of all lists of a query.

    Args:
        policy: The model.
        counts: The counts of the log.
        expected_examinations: [L, K] the exposure of each shown document.
        queries: The queries to estimate, ascending.
        stages: Told of the lists that were re-ordered so far.

    Returns:
        logged: [number of queries] in the order that was shown.
        reordered: [number of queries] in the model's order.
    """
    lists = counts.lists
    examination = _mean_examination(counts, expected_examinations)
    rates = corrected_rates(counts, expected_examinations)
    row = np.full(lists.candidates.n_queries, -1)
    row[queries] = np.arange(len(queries))
    chosen = np.flatnonzero(row[lists.query] >= 0)
    lists, level = lists.select(chosen), counts.level_of_list[chosen]
    documents = lists.documents
    positions = np.argsort(~lists.where, axis=1, kind="stable")  # filled positions first, from the top
    filled = np.take_along_axis(lists.where, positions, axis=1)

    def rewards(order: Ints) -> Doubles:
        rate = rates[np.take_along_axis(documents, order, axis=1)] * examination[level[:, None], positions] * filled
        of_lists = rate.sum(axis=1) * lists.count
        return np.bincount(row[lists.query], weights=of_lists, minlength=len(queries)).astype(np.float64)

    return rewards(positions), rewards(model_order(policy, lists, queries, positions, stages))


def _mean_examination(counts: ClickCounts, expected_examinations: Doubles) -> Doubles:
    """[levels, K] the mean expected examinations of each position, by level of context."""
    lists, level = counts.lists, counts.level_of_list
    impressions = lists.where * lists.count[:, None]
    rows = [level == number for number in range(len(counts.levels))]
    return np.stack([expected_examinations[r].sum(axis=0) / np.maximum(impressions[r].sum(axis=0), 1) for r in rows])


def corrected_rates(counts: ClickCounts, expected_examinations: Doubles) -> Doubles:
    """[n_documents] α̂ = (rewards + prior) / (expected examinations + 1), the prior being the query's mean α̂."""
    query = counts.lists.candidates.query_of_document
    n_queries = counts.lists.candidates.n_queries
    rewards = counts.by_document(counts.by_position(counts.rewards))
    exposure = counts.by_document(expected_examinations)
    of_query = (np.bincount(query, weights=values, minlength=n_queries) for values in (rewards, exposure))
    rewards_of_query, exposure_of_query = of_query
    mean = rewards_of_query / np.maximum(exposure_of_query, 1e-9)
    rates: Doubles = (rewards + mean[query]) / (exposure + 1)
    return rates


def model_order(
    policy: RankingPolicy, lists: ClickLog, queries: Ints, positions: Ints, stages: Stages = unseen_stages
) -> Ints:
    """[L, K] the positions of each list, in the order in which the model ranks the documents shown there.

    Args:
        policy: The model.
        lists: L lists.
        queries: The queries of these lists.
        positions: [L, K] the filled positions of each list from the top, then the others.
        stages: Told of the lists that were re-ordered so far.
    """
    candidates = lists.candidates
    if isinstance(policy, ScoringPolicy):  # the score of a document does not depend on the list
        stages("scoring", None)
        scores = np.zeros(candidates.n_documents)
        scores[candidates.rows_of(queries)] = policy.score(candidates.select(queries))
        return np.argsort(np.where(lists.where, -scores[lists.documents], np.inf), axis=1, kind="stable")
    if isinstance(policy, SequentialPolicy) and policy.normaliser.kind == "query-min-max":
        # Features are scaled by all candidates of a query, not by the documents of one list.
        scaled = policy.normaliser.apply(policy.normaliser.as_fitted(candidates, policy.n_features))
        policy, lists = policy.of_scaled(), replace(lists, candidates=scaled)
    order, progress = positions.copy(), stages("re-ordering lists", len(lists))
    for start in range(0, len(lists), LISTS_AT_A_TIME):
        part = slice(start, start + LISTS_AT_A_TIME)
        places = policy.rank(_lists_as_queries(lists.select(part)), lists.k)
        by_model = np.take_along_axis(positions[part], np.maximum(places, 0), axis=1)
        order[part] = np.where(places >= 0, by_model, positions[part])
        progress(len(places))
    return order


def _lists_as_queries(lists: ClickLog) -> Candidates:
    """One query per list, with the shown documents as candidates."""
    candidates, where = lists.candidates, lists.where
    return Candidates(
        candidates.features[lists.documents[where]],
        np.concatenate([[0], np.cumsum(where.sum(axis=1))]),
        candidates.query_ids[lists.query],
        feature_names=candidates.feature_names,
    )
