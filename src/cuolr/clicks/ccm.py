"""The click chain model: after a click, the probability of continuing depends on the document's relevance."""

from dataclasses import dataclass

from cuolr.clicks.click_model import CLICK_MODELS, Probability, Reals, TopDownModel


@CLICK_MODELS.register("ccm")
@dataclass(frozen=True, kw_only=True)
class ClickChainModel(TopDownModel):
    """A user who may stop without a click, and is more likely to stop after a click on a relevant document.

    Appendix C: P(continue | no click) = α₁ and P(continue | click on d) = α₂·(1 − R) + α₃·R, R the relevance of d, so
    χ(R, k) = Π_{i<k} [α₁·(1 − a_i) + a_i·(α₂·(1 − R_i) + α₃·R_i)], a_i the attractiveness. Guo et al. 2009, "Click
    chain model in web search". η does not apply; nothing depends on the position, so lists may have any length.

    Deviation: the product in the paper omits α₁; this follows the transition probabilities in its text.

    Attributes:
        continuation_after_skip: α₁.
        continuation_after_irrelevant: α₂, after a click on a document of grade 0.
        continuation_after_relevant: α₃, after a click on a document of the highest grade.
        relevance_is_attractiveness: R is the attractiveness, as in the original model, instead of the relevance
            without click noise.
    """

    continuation_after_skip: Probability = 0.9
    continuation_after_irrelevant: Probability = 0.5
    continuation_after_relevant: Probability = 0.25
    relevance_is_attractiveness: bool = False

    def continue_after_click(self, relevance: Reals) -> Reals:
        """[B, K] α₂·(1 − R) + α₃·R."""
        relevant = self.attractiveness(relevance) if self.relevance_is_attractiveness else relevance
        gap = self.continuation_after_relevant - self.continuation_after_irrelevant
        return self.continuation_after_irrelevant + gap * relevant

    def continue_after_skip(self) -> float:
        """α₁."""
        return self.continuation_after_skip
