"""Expected clicks under a click model."""

import numpy as np

from cuolr.clicks.click_model import click_model, relevance_of
from cuolr.evaluation.measures.measure import MEASURES, GradedLists, RankingMeasure
from cuolr.types import Doubles


@MEASURES.register("clicks")
class ExpectedClicks(RankingMeasure):
    """Expected clicks, Σ_k P(C_k = 1), under the click model named after the colon, as in `clicks:pbm@10`.

    The return of the ranking MDP, equation 3, with discount 1. Queries without a relevant document have clicks, too.
    """

    parameter = "click model"
    needs_scale = True
    without_relevant = "own"

    def __init__(self, argument: str = "") -> None:
        super().__init__(argument)
        self._model = click_model(argument)

    def per_query(self, lists: GradedLists) -> Doubles:
        """[B]."""
        probability = self._model.click_probability(relevance_of(lists.shown, lists.max_grade), lists.where)
        total: Doubles = probability @ np.ones(lists.shown.shape[1])
        return total
