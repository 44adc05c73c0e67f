"""The probability of a satisfied user under a click model."""

from cuolr.clicks.click_model import CLICK_MODELS, click_model, relevance_of
from cuolr.clicks.sdbn import SimplifiedDynamicBayesianModel
from cuolr.errors import InputError
from cuolr.evaluation.measures.measure import MEASURES, GradedLists, RankingMeasure
from cuolr.types import Doubles


@MEASURES.register("satisfaction")
class ExpectedSatisfaction(RankingMeasure):
    """The probability that a user is satisfied, Σ_k P(C_k = 1)·s(d_k), as in `satisfaction:dbn@10`.

    Under the dynamic Bayesian network model and its simplified form a satisfied user stops, so a user is satisfied once
    at most. More expected clicks can mean that users are satisfied later, or not at all; this measure tells.
    """

    parameter = "click model"
    needs_scale = True
    without_relevant = "own"

    def __init__(self, argument: str = "") -> None:
        super().__init__(argument)
        model = click_model(argument)
        if not isinstance(model, SimplifiedDynamicBayesianModel):
            models = ((name, CLICK_MODELS.get(name)) for name in CLICK_MODELS.names())
            known = ", ".join(name for name, kind in models if issubclass(kind, SimplifiedDynamicBayesianModel))
            raise InputError(
                f"measure 'satisfaction:{argument}': users of {argument} are never satisfied; choose one of {known}"
            )
        self._model = model

    def per_query(self, lists: GradedLists) -> Doubles:
        """[B]."""
        relevance = relevance_of(lists.shown, lists.max_grade)
        clicked = self._model.click_probability(relevance, lists.where)
        satisfied: Doubles = (clicked * self._model.satisfied_by_click(relevance)).sum(axis=1)
        return satisfied
