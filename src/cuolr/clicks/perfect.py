"""A user without position bias, as a reference."""

from dataclasses import dataclass

import numpy as np

from cuolr.clicks.click_model import CLICK_MODELS, ClickModel
from cuolr.types import Bools, Doubles, Floats


@CLICK_MODELS.register("perfect")
@dataclass(frozen=True, kw_only=True)
class PerfectModel(ClickModel):
    """A user who examines every position, χ(R, k) = 1, so that click rates estimate attractiveness without bias."""

    def examine(self, relevance: Floats, attracted: Bools, uniforms: Floats) -> Bools:
        """Everything."""
        return np.ones(relevance.shape, np.bool_)

    def examination_probability(self, relevance: Doubles) -> Doubles:
        """1 everywhere."""
        return np.ones_like(relevance)
