"""The dependent click model: after a click, the probability of continuing depends on the position."""

from dataclasses import dataclass

from cuolr.clicks.click_model import CLICK_MODELS, Probability, Reals, Severity, TopDownModel, by_position
from cuolr.clicks.pbm import EYE_TRACKING


@CLICK_MODELS.register("dcm")
@dataclass(frozen=True, kw_only=True)
class DependentClickModel(TopDownModel):
    """A user who continues until a click, and then with probability λ_k: χ(R, k) = Π_{i<k} [1 − α(d_i)·(1 − λ_i)].

    Section 5.1 and appendix C, λ_k = ρ_k^η with the ρ of the position-based model; Guo et al. 2009, "Efficient
    multiple-click models in web search".

    Attributes:
        eta: η, the severity of position bias; 0 = every position is examined.
        continuation: λ before the power, by position of the click; the last value applies to further positions.
    """

    eta: Severity = 1.0
    continuation: tuple[Probability, ...] = EYE_TRACKING

    def continue_after_click(self, relevance: Reals) -> Reals:
        """[K] λ_k."""
        return by_position(self.continuation, relevance, self.eta)
