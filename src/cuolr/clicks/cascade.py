"""The cascade model: users examine from the top until the first click."""

from dataclasses import dataclass

import numpy as np

from cuolr.clicks.click_model import CLICK_MODELS, Reals, TopDownModel


@CLICK_MODELS.register("cascade")
@dataclass(frozen=True, kw_only=True)
class CascadeModel(TopDownModel):
    """A user who examines from the top and stops at the first click: χ(R, k) = Π_{i<k} (1 − α(d_i)).

    Appendix C; Craswell et al. 2008. η does not apply.
    """

    def continue_after_click(self, relevance: Reals) -> Reals:
        """Never."""
        return np.zeros_like(relevance)
