"""The position-based model: examination depends on the position alone."""

from dataclasses import dataclass

import numpy as np

from cuolr.clicks.click_model import CLICK_MODELS, ClickModel, Probability, Severity, by_position
from cuolr.types import Bools, Doubles, Floats

# Examination at rank 1..10, from the eye-tracking study of Joachims et al. (2005), as in section 5.1.
EYE_TRACKING = (0.68, 0.61, 0.48, 0.34, 0.28, 0.20, 0.11, 0.10, 0.08, 0.06)


@CLICK_MODELS.register("pbm")
@dataclass(frozen=True, kw_only=True)
class PositionBasedModel(ClickModel):
    """A user who examines each position with its own probability, whatever is shown: χ(R, k) = ρ_k^η.

    Section 5.1 and appendix C; Joachims et al. 2005.

    Attributes:
        eta: η, the severity of position bias; 0 = every position is examined.
        examination: ρ, by position; the last value applies to further positions.
    """

    eta: Severity = 1.0
    examination: tuple[Probability, ...] = EYE_TRACKING

    def examine(self, relevance: Floats, attracted: Bools, uniforms: Floats) -> Bools:
        """Each position independently."""
        return uniforms < by_position(self.examination, relevance, self.eta)

    def examination_probability(self, relevance: Doubles) -> Doubles:
        """ρ_k^η, the same for every list."""
        return np.tile(by_position(self.examination, relevance, self.eta), (len(relevance), 1))
