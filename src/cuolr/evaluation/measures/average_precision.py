"""Average precision."""

import numpy as np

from cuolr.evaluation.measures.graded_lists import GradedLists, positive
from cuolr.evaluation.measures.measure import MEASURES, RankingMeasure
from cuolr.types import Doubles


@MEASURES.register("map")
class AveragePrecision(RankingMeasure):
    """Σ_k [d_k relevant]·precision@k / min(k_max, relevant documents); its mean is the MAP.

    The divisor is what an ideal list of this length can reach, so that it gets 1; `trec_eval`'s `map_cut` divides by
    all relevant documents, which is the same where the list is long enough to hold them.
    """

    def per_query(self, lists: GradedLists) -> Doubles:
        """[B]."""
        relevant = lists.shown > 0
        precisions = np.cumsum(relevant, axis=1) / lists.positions
        possible = np.minimum(lists.relevant, lists.k)
        total: Doubles = (relevant * precisions).sum(axis=1) / positive(possible)
        return total
