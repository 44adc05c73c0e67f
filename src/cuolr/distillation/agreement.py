"""How much the lists of two models agree."""

import numpy as np

from cuolr.policies.policy import RankingPolicy
from cuolr.policies.ranking_in_parts import RankingInParts
from cuolr.progress import unseen
from cuolr.types import Candidates, Ints

# The documents of a list that are compared.
TOP = 10


def agreement_of_top(one: RankingPolicy, other: RankingPolicy, candidates: Candidates, k: int = TOP) -> float:
    """The share of one model's top k that is in the top k of the other, in any order, on average over queries.

    Args:
        one: A model.
        other: Another one.
        candidates: The queries; those without documents do not count.
        k: Length of the lists.
    """
    asked = np.flatnonzero(candidates.sizes > 0)
    candidates = candidates.select(asked)
    lists = [RankingInParts(policy, unseen).rank(candidates, k) for policy in (one, other)]
    return float(np.mean(shared_documents(*lists) / np.minimum(candidates.sizes, k)))


def shared_documents(one: Ints, other: Ints) -> Ints:
    """[B] the number of documents that both lists [B, k] have; −1 stands for none.

    >>> shared_documents(np.array([[3, 1, -1]]), np.array([[1, 0, -1]])).tolist()
    [1]
    """
    both = (one[:, :, None] == other[:, None, :]) & (one >= 0)[:, :, None]
    counts: Ints = both.sum(axis=(1, 2))
    return counts
