"""Average precision."""

import numpy as np

from cuolr.evaluation.measures.measure import MEASURES, GradedLists, RankingMeasure, positive
from cuolr.types import Doubles


@MEASURES.register("map")
class AveragePrecision(RankingMeasure):
    """Average precision, Σ_k [d_k relevant]·precision@k / min(k_max, relevant documents); its mean is the MAP.

    The divisor gives an ideal list of this length the value 1. `trec_eval`'s `map_cut` divides by the number of all
    relevant documents, which is the same if the list is long enough for them.
    """

    def per_query(self, lists: GradedLists) -> Doubles:
        """[B]."""
        relevant = lists.shown > 0
        precisions = np.cumsum(relevant, axis=1) / lists.positions
        possible = np.minimum(lists.relevant, lists.k)
        total: Doubles = (relevant * precisions).sum(axis=1) / positive(possible)
        return total
