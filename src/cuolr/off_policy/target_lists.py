"""The lists that a policy would show in the sessions of a log, at the positions that the logged lists fill."""

import numpy as np

from cuolr.off_policy.compared_lists import CountedLists
from cuolr.off_policy.evaluated_policy import Policy
from cuolr.off_policy.list_distributions import distribution_of
from cuolr.types import Bools, Candidates, Doubles, Ints

# Lists of a stochastic policy that are drawn for each query.
DRAWN_LISTS = 16


def target_lists(policy: Policy, candidates: Candidates, logged: CountedLists) -> CountedLists:
    """The policy's own top documents for each query, as many as a logged list has, at its positions on the page.

    Args:
        policy: Shows one list per query, or draws it: then some draws share the sessions.
        candidates: The documents.
        logged: The logged lists; indices of pairs are rows of the candidates.
    """
    query, filled, count = _distinct_pages(logged)
    queries, of_page = np.unique(query, return_inverse=True)
    length = max(int(filled.sum(axis=1).max(initial=0)), 1)
    drawn = distribution_of(policy, candidates, queries, length).sample(queries)[1]
    drawn = drawn.reshape(len(queries), -1, length)[:, :DRAWN_LISTS]
    pages = [_on_page(drawn[of_page, number], filled, candidates.offsets[query]) for number in range(drawn.shape[1])]
    number = len(pages)
    return CountedLists(np.tile(query, number), np.concatenate(pages), np.tile(count / number, number))


def _distinct_pages(logged: CountedLists) -> tuple[Ints, Bools, Doubles]:
    """The distinct (query, filled positions) with the number of their sessions."""
    filled = logged.documents >= 0
    rows = np.column_stack([logged.query.astype(np.int64), np.packbits(filled, axis=1).astype(np.int64)])
    # Most logs fill the same positions everywhere.
    by_query = rows[:, :1] if (filled == filled[:1]).all() else rows
    _, first, page = np.unique(by_query, axis=0, return_index=True, return_inverse=True)
    count = np.bincount(page.ravel(), weights=logged.count, minlength=len(first))
    return logged.query[first].astype(np.int64), filled[first], count.astype(np.float64)


def _on_page(ranking: Ints, filled: Bools, offset: Ints) -> Ints:
    """[L, K] the documents of a ranking [L, k], in order at the filled positions; −1 elsewhere."""
    place = np.maximum(np.cumsum(filled, axis=1) - 1, 0)
    index = np.take_along_axis(ranking, place, axis=1)
    return np.where(filled & (index >= 0), offset[:, None] + index, -1)
