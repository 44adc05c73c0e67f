"""Precision."""

from cuolr.evaluation.measures.measure import MEASURES, GradedLists, RankingMeasure
from cuolr.types import Doubles


@MEASURES.register("precision")
class Precision(RankingMeasure):
    """Precision, the share of positions with a relevant document; those after the end of a list count as irrelevant."""

    def per_query(self, lists: GradedLists) -> Doubles:
        """[B]."""
        share: Doubles = (lists.shown > 0).sum(axis=1) / lists.k
        return share
