"""Sessions in which the documents at neighbouring positions are swapped."""

import numpy as np

from cuolr.clicks.click_model import ClickModel, relevance_of
from cuolr.examination.swap_advice import Swap
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.session_files import one_each
from cuolr.policies.policy import RankingPolicy
from cuolr.types import RankingDataset


def with_swaps(
    dataset: RankingDataset, policy: RankingPolicy, users: ClickModel, sessions: int, swaps: list[Swap], seed: int
) -> ClickLog:
    """Simulated sessions, each with at most one swap."""
    rng, candidates = np.random.default_rng(seed), dataset.candidates
    query = rng.integers(0, candidates.n_queries, sessions).astype(np.int32)
    ranking = policy.rank(candidates, 10)[query]
    shares = [swap.share for swap in swaps]
    chosen = rng.choice(len(swaps) + 1, sessions, p=[*shares, 1 - sum(shares)])
    for number, swap in enumerate(swaps):
        rows = np.flatnonzero((chosen == number) & (ranking[:, swap.first + 1] >= 0))[:, None]
        pair = [swap.first, swap.first + 1]
        ranking[rows, pair] = ranking[rows, pair[::-1]]
    where = ranking >= 0
    grades = np.where(where, dataset.relevance[candidates.offsets[query, None] + ranking], 0)
    uniforms = rng.random((*ranking.shape, 2), np.float32)
    clicks, _ = users.respond(relevance_of(grades, dataset.max_grade), where, uniforms)
    return ClickLog(candidates, query, ranking.astype(np.int16), clicks.astype(np.uint8), one_each(sessions))
