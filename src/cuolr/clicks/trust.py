"""The position-based model with trust bias: near the top, users also click documents that are not relevant."""

from dataclasses import dataclass

from cuolr.clicks.click_model import CLICK_MODELS, Probability, Reals, by_position
from cuolr.clicks.pbm import PositionBasedModel


@CLICK_MODELS.register("trust")
@dataclass(frozen=True, kw_only=True)
class TrustBiasModel(PositionBasedModel):
    """A position-based user who trusts the ranking: P(C_k = 1) = ρ_k^η · [ε⁺_k·α(d) + ε⁻_k·(1 − α(d))].

    Agarwal et al. 2019, "Addressing trust bias for unbiased learning-to-rank". The constants are those that Vardasbi
    et al. 2021 ("Mixture-based correction for position and trust bias in counterfactual learning to rank", equations
    10 and 11) use in simulation, ε⁺_k = 1 − (min(k, 20) + 1)/100 and ε⁻_k = 0.65 / min(k, 10).

    Deviation: the paper does not have this model, and definition 3.1 does not cover it, because the click probability
    of an examined document depends on the position. ε⁻ is click noise, too, so `noise` is 0 by default.

    Attributes:
        click_relevant: ε⁺, the probability that an examined relevant document is clicked, by position; the last value
            applies to further positions.
        click_irrelevant: ε⁻, the same for an irrelevant document.
    """

    noise: Probability = 0.0
    click_relevant: tuple[Probability, ...] = tuple(1 - (rank + 1) / 100 for rank in range(1, 21))
    click_irrelevant: tuple[Probability, ...] = tuple(0.65 / rank for rank in range(1, 11))

    def click_if_examined(self, relevance: Reals) -> Reals:
        """[B, K] ε⁺_k·α(d) + ε⁻_k·(1 − α(d))."""
        relevant = by_position(self.click_relevant, relevance)
        irrelevant = by_position(self.click_irrelevant, relevance)
        return irrelevant + (relevant - irrelevant) * self.attractiveness(relevance)
