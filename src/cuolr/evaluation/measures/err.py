"""Expected reciprocal rank."""

import numpy as np

from cuolr.evaluation.measures.measure import MEASURES, GradedLists, RankingMeasure, exponential_gain
from cuolr.types import Doubles


@MEASURES.register("err")
class ExpectedReciprocalRank(RankingMeasure):
    """Expected reciprocal rank, Σ_k (1/k)·R_k·Π_{i<k} (1 − R_i), with R = (2^r − 1) / 2^r_max.

    Chapelle et al. 2009; r_max is the highest grade of the data set's scale.
    """

    needs_scale = True

    def per_query(self, lists: GradedLists) -> Doubles:
        """[B]."""
        satisfied = exponential_gain(lists.shown) / 2**lists.max_grade
        arrived = np.ones_like(satisfied)
        np.cumprod(1 - satisfied[:, :-1], axis=1, out=arrived[:, 1:])
        total: Doubles = (arrived * satisfied) @ (1 / lists.positions)
        return total
