"""The dynamic Bayesian network model: users continue until they are satisfied or give up."""

from dataclasses import dataclass

from cuolr.clicks.click_model import CLICK_MODELS, Probability, Reals
from cuolr.clicks.sdbn import SimplifiedDynamicBayesianModel


@CLICK_MODELS.register("dbn")
@dataclass(frozen=True, kw_only=True)
class DynamicBayesianModel(SimplifiedDynamicBayesianModel):
    """A user who stops when satisfied, and otherwise continues with probability γ: χ(R, k) = Π_{i<k} γ·[1 − a_i·s_i].

    Chapelle and Zhang 2009, "A dynamic Bayesian network click model for web search ranking"; not in the paper. Being
    unsatisfied and persevering are drawn together, which does not change the distribution of clicks.

    Attributes:
        perseverance: γ, the probability that an unsatisfied user continues; 0.9 was best in their experiments.
    """

    perseverance: Probability = 0.9

    def continue_after_click(self, relevance: Reals) -> Reals:
        """[B, K] γ·(1 − s)."""
        return self.perseverance * super().continue_after_click(relevance)

    def continue_after_skip(self) -> float:
        """γ."""
        return self.perseverance
