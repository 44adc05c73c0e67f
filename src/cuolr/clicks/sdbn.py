"""The simplified dynamic Bayesian network model: users continue until they are satisfied."""

from dataclasses import dataclass

from cuolr.clicks.click_model import CLICK_MODELS, Probability, Reals, TopDownModel


@CLICK_MODELS.register("sdbn")
@dataclass(frozen=True, kw_only=True)
class SimplifiedDynamicBayesianModel(TopDownModel):
    """A user who stops only when satisfied by a clicked document: χ(R, k) = Π_{i<k} [1 − a_i·s_i].

    Chapelle and Zhang 2009, "A dynamic Bayesian network click model for web search ranking"; not in the paper.
    a_i is the attractiveness, and s_i = satisfaction · relevance the probability that d_i satisfies once clicked; an
    irrelevant document, clicked by noise, never does. Nothing depends on the position, so lists may have any length.

    Attributes:
        satisfaction: The probability that a clicked document of the highest grade satisfies. The default is the stop
            probability of the navigational user of Hofmann et al. 2013, "Balancing exploration and exploitation in
            listwise and pairwise online learning to rank".
    """

    satisfaction: Probability = 0.9

    def satisfied_by_click(self, relevance: Reals) -> Reals:
        """[B, K] s, the probability that a clicked document satisfies."""
        return self.satisfaction * relevance

    def continue_after_click(self, relevance: Reals) -> Reals:
        """[B, K] 1 − s, the probability of not being satisfied."""
        return 1 - self.satisfied_by_click(relevance)
