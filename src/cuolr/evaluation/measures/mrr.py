"""Reciprocal rank."""

from cuolr.evaluation.measures.measure import MEASURES, GradedLists, RankingMeasure
from cuolr.types import Doubles


@MEASURES.register("mrr")
class ReciprocalRank(RankingMeasure):
    """Reciprocal rank of the first relevant document, 0 if none is shown; its mean is the MRR."""

    def per_query(self, lists: GradedLists) -> Doubles:
        """[B]."""
        relevant = lists.shown > 0
        first: Doubles = relevant.any(axis=1) / (1.0 + relevant.argmax(axis=1))
        return first
