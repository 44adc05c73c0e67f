"""The simplified dynamic Bayesian model: read on until satisfied."""

from dataclasses import dataclass

from cuolr.clicks.click_model import CLICK_MODELS, Probability, Reals
from cuolr.clicks.top_down import TopDownModel


@CLICK_MODELS.register("sdbn")
@dataclass(frozen=True, kw_only=True)
class SimplifiedDynamicBayesianModel(TopDownModel):
    """A user who leaves only when a clicked document satisfied: χ(R, k) = Π_{i<k} [1 − a_i·s_i].

    Chapelle and Zhang 2009, "A dynamic Bayesian network click model for web search ranking"; not in the paper.
    a_i is the attractiveness and s_i = satisfaction · relevance the chance that d_i satisfies once clicked: a click
    by noise on an irrelevant document never does. Nothing depends on the position, so lists may have any length.

    Attributes:
        satisfaction: The chance that a clicked document of the highest grade satisfies; by default the chance to stop
            there of the navigational user of Hofmann et al. 2013, "Balancing exploration and exploitation in listwise
            and pairwise online learning to rank".
    """

    satisfaction: Probability = 0.9

    def continue_after_click(self, relevance: Reals) -> Reals:
        """[B, K] 1 − s, the chance of not being satisfied."""
        return 1 - self.satisfaction * relevance
