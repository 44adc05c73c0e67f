"""How a teacher rates documents: its scores, or what its lists say in their place."""

import numpy as np

from cuolr.policies.policy import RankingPolicy, ScoringPolicy
from cuolr.policies.ranking_in_parts import RankingInParts
from cuolr.progress import Progress, unseen
from cuolr.types import Candidates, Doubles

# Positions of a list of a teacher without scores that are told apart; the documents below count as equal.
LIST_LENGTH = 30


def teacher_scores(teacher: RankingPolicy, candidates: Candidates, progress: Progress = unseen) -> Doubles:
    """[n_documents] the ratings, centred within each query and divided by their standard deviation over all queries.

    A teacher that scores documents is taken at its scores. Of one that gives lists only, the document at position r
    counts −log(1 + r), r from 0, and all documents below `LIST_LENGTH` as the one at that position.

    Args:
        teacher: The model to reproduce.
        candidates: At least one document.
        progress: Called with the number of queries that were rated since the last call.
    """
    if isinstance(teacher, ScoringPolicy):
        scores = teacher.score(candidates).astype(np.float64)
        progress(candidates.n_queries)
    else:
        scores = _scores_of_lists(teacher, candidates, progress)
    query = np.repeat(np.arange(candidates.n_queries), candidates.sizes)
    sums = np.bincount(query, weights=scores, minlength=candidates.n_queries)
    centred: Doubles = scores - (sums / np.maximum(candidates.sizes, 1))[query]
    spread = float(centred.std())
    return centred / spread if spread > 0 else centred


def _scores_of_lists(teacher: RankingPolicy, candidates: Candidates, progress: Progress) -> Doubles:
    ranking = RankingInParts(teacher, progress).rank(candidates, LIST_LENGTH)
    scores = np.full(candidates.n_documents, -np.log1p(LIST_LENGTH))
    placed = ranking >= 0
    documents = (candidates.offsets[:-1, None] + ranking)[placed]
    scores[documents] = -np.log1p(np.broadcast_to(np.arange(LIST_LENGTH), ranking.shape)[placed])
    return scores
