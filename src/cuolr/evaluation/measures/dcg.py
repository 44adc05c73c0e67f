"""Discounted cumulative gain, plain and normalised."""

import numpy as np

from cuolr.evaluation.measures.measure import MEASURES, GradedLists, RankingMeasure, exponential_gain, positive
from cuolr.types import Doubles


@MEASURES.register("dcg")
class Dcg(RankingMeasure):
    """Discounted cumulative gain, Σ_k (2^r_k − 1) / log2(1 + k), positions k counted from 1."""

    without_relevant = "sum"

    def per_query(self, lists: GradedLists) -> Doubles:
        """[B]."""
        return _discounted_sum(exponential_gain(lists.shown))


@MEASURES.register("ndcg")
class NormalisedDcg(RankingMeasure):
    """Normalised discounted cumulative gain, DCG over that of the ideal list."""

    def per_query(self, lists: GradedLists) -> Doubles:
        """[B] 0 where no document is relevant."""
        ideal = positive(_discounted_sum(exponential_gain(lists.ideal)))
        return _discounted_sum(exponential_gain(lists.shown)) / ideal


@MEASURES.register("dcg-linear")
class LinearDcg(RankingMeasure):
    """Discounted cumulative gain with the grade as gain, Σ_k r_k / log2(1 + k)."""

    without_relevant = "sum"

    def per_query(self, lists: GradedLists) -> Doubles:
        """[B]."""
        return _discounted_sum(lists.shown.astype(np.float64))


@MEASURES.register("ndcg-linear")
class NormalisedLinearDcg(RankingMeasure):
    """Normalised `dcg-linear`, the nDCG of `trec_eval` and scikit-learn."""

    def per_query(self, lists: GradedLists) -> Doubles:
        """[B] 0 where no document is relevant."""
        ideal = positive(_discounted_sum(lists.ideal.astype(np.float64)))
        return _discounted_sum(lists.shown.astype(np.float64)) / ideal


def _discounted_sum(gains: Doubles) -> Doubles:
    total: Doubles = gains @ (1 / np.log2(1 + np.arange(1, gains.shape[1] + 1)))
    return total
