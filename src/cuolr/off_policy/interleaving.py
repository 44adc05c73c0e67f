"""What a team-draft interleaving test would see, under users that were fitted to a log."""

import numpy as np

from cuolr.off_policy.compared_lists import ComparedLists, CountedLists
from cuolr.off_policy.position_discount import weights_in_lists
from cuolr.off_policy.users.fitted_users import UserResponse
from cuolr.random import FIXED_SEED
from cuolr.types import Bools, Doubles, Ints

# Lists that are interleaved, at most, and interleavings of all of them.
MAX_LISTS, INTERLEAVINGS = 4_096, 1 << 16


def interleaving_preference(compared: ComparedLists, users: UserResponse) -> tuple[float, float]:
    """Mean and variance of a session's preference S = Σ_k t_k · v_k · C_k for the policy over the baseline.

    Team-draft interleaving (Radlinski, Kurup and Joachims 2008): t_k = 1 if the policy contributed the document at
    position k, −1 if the baseline did. v_k is what a click there is worth. With p_k the users' click probability on
    the interleaved list,

        E[S] = E[Σ_k t_k v_k p_k],   Var S = E[Σ_k v_k² p_k] − 2 E[Σ_{rounds j, j + 1} v_j v_{j+1} p_j p_{j+1}] − E[S]².

    The expectations are over the sessions' lists and the coins, half of which are the opposite of the other half. The
    two documents of a round are of opposite teams; their clicks are taken as independent, given the list. The coins of
    different rounds are independent: such pairs add a product of two preferences, which is left out.
    """
    assert isinstance(compared.baseline, CountedLists)
    baseline = compared.baseline.sample(MAX_LISTS)
    target = _same_sessions(compared.target, baseline)
    filled = baseline.documents >= 0
    first, second = (_shown_first(documents) for documents in (target, baseline.documents))
    pairs = max(1, INTERLEAVINGS // (2 * len(first)))
    count, filled = np.tile(baseline.count, pairs), np.tile(filled, (pairs, 1))
    first, second = np.tile(first, (pairs, 1)), np.tile(second, (pairs, 1))
    coins = np.random.default_rng(FIXED_SEED).random(first.shape) < 0.5
    mean = square = 0.0
    for heads in (coins, ~coins):
        ranking, of_rank = team_draft(first, second, heads)
        documents, team = (_on_page(values, filled) for values in (ranking, of_rank))
        worth = _worth(compared, documents)
        clicks = users.clicks(documents)
        mean += float(count @ (clicks * worth * team).sum(axis=1))
        square += float(count @ ((clicks * worth**2).sum(axis=1) - 2 * _of_rounds(clicks * worth, filled)))
    draws = 2 * float(count.sum())
    return mean / draws, square / draws - (mean / draws) ** 2


def team_draft(first: Ints, second: Ints, coins: Bools) -> tuple[Ints, Ints]:
    """Interleave rankings: in each round of two positions a coin says which team is the first to add its best document.

    Args:
        first: [M, K] distinct documents, −1 = no more.
        second: [M, K] as many of them.
        coins: [M, K] whether the first team begins the round; that of the round's first position counts.

    Returns:
        documents: [M, K] the interleaved ranking, −1 = no more.
        team: [M, K] 1 if the first team contributed the document, −1 if the second did, 0 where there is none.
    """
    documents, team = np.full_like(first, -1), np.zeros_like(first)
    rankings = np.stack([first, second])
    free, every = rankings >= 0, np.arange(len(first))
    # Where the other team has the same document; in one more column, if it has not.
    place = [_places(first, second), _places(second, first)]
    free = np.concatenate([free, np.zeros((*free.shape[:2], 1), np.bool_)], axis=2)
    for position in range(first.shape[1]):
        begins = coins[:, position - position % 2] ^ bool(position % 2)
        turn = np.where(begins, 0, 1)
        best = free[turn, every].argmax(axis=1)
        some = free[turn, every, best]
        best = np.where(some, best, 0)
        documents[:, position] = np.where(some, rankings[turn, every, best], -1)
        team[:, position] = np.where(some, np.where(begins, 1, -1), 0)
        other = np.where(begins, place[0][every, best], place[1][every, best])
        free[turn, every, best] &= ~some
        free[1 - turn, every, other] &= ~some
    return documents, team


def _places(documents: Ints, others: Ints) -> Ints:
    """[M, K] the place among the others [M, K] of each document; K = none."""
    same = documents[:, :, None] == others[:, None, :]
    return np.where(same.any(axis=2), same.argmax(axis=2), others.shape[1])


def _of_rounds(values: Doubles, filled: Bools) -> Doubles:
    """[L] the sum over rounds of the product of their two documents' values."""
    order = np.argsort(~filled, axis=1, kind="stable")
    in_order = np.take_along_axis(values, order, axis=1)
    rounds = values.shape[1] // 2
    products: Doubles = (in_order[:, : 2 * rounds : 2] * in_order[:, 1 : 2 * rounds : 2]).sum(axis=1)
    return products


def _same_sessions(target: CountedLists, baseline: CountedLists) -> Ints:
    """[L, K] the policy's list for the query of each list of the baseline, on as many positions of the page."""
    keys = [
        np.column_stack([lists.query, np.packbits(lists.documents >= 0, axis=1)]).astype(np.int64)
        for lists in (target, baseline)
    ]
    _, key = np.unique(np.concatenate(keys), axis=0, return_inverse=True)
    of_target, of_baseline = np.split(key.ravel(), [len(target.query)])
    row = np.full(int(key.max()) + 1, -1)
    row[of_target] = np.arange(len(target.query))
    found = row[of_baseline]
    # A policy with fewer documents than the page has places adds what it has.
    by_query = np.zeros(int(max(target.query.max(), baseline.query.max())) + 1, np.int64)
    by_query[target.query] = np.arange(len(target.query))
    return target.documents[np.where(found >= 0, found, by_query[baseline.query])]


def _shown_first(documents: Ints) -> Ints:
    """[L, K] the documents of a page in their order, −1 after the last."""
    order = np.argsort(documents < 0, axis=1, kind="stable")
    return np.take_along_axis(documents, order, axis=1)


def _on_page(ranking: Ints, filled: Bools) -> Ints:
    """[L, K] a ranking at the filled positions of pages; −1 elsewhere."""
    place = np.maximum(np.cumsum(filled, axis=1) - 1, 0)
    return np.where(filled, np.take_along_axis(ranking, place, axis=1), -1)


def _worth(compared: ComparedLists, documents: Ints) -> Doubles:
    """[L, K] what a click counts."""
    worth: Doubles = compared.worth[documents]
    if compared.position_weights is not None:
        worth = worth * weights_in_lists(documents >= 0, compared.position_weights)
    return worth
