"""Base of the cascade model and its extensions: users examine from the top until they stop."""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from cuolr.clicks.click_model import ClickModel, Reals
from cuolr.types import Bools, Doubles, Floats


@dataclass(frozen=True, kw_only=True)
class TopDownModel(ClickModel):
    """A user who examines the first document, and continues with a probability that may depend on clicks.

    With a the attractiveness: χ(R, k) = Π_{i<k} [(1 − a_i)·P(continue | no click) + a_i·P(continue | click on d_i)].
    """

    @abstractmethod
    def continue_after_click(self, relevance: Reals) -> Reals:
        """[B, K] or [K] the probability that the next document is examined after a click on this one."""

    def continue_after_skip(self) -> float:
        """The probability that the next document is examined if this one was not clicked."""
        return 1.0

    def examine(self, relevance: Floats, attracted: Bools, uniforms: Floats) -> Bools:
        """From the top until the user stops."""
        chance = np.where(attracted, self.continue_after_click(relevance), self.continue_after_skip())
        goes_on = uniforms < chance
        examination = np.empty(relevance.shape, np.bool_)
        examination[:, :1] = True
        for k in range(1, relevance.shape[1]):
            np.logical_and(examination[:, k - 1], goes_on[:, k - 1], out=examination[:, k])
        return examination

    def examination_probability(self, relevance: Doubles) -> Doubles:
        """The product over the documents above of the probability to continue from each."""
        attractiveness = self.attractiveness(relevance)
        onward = (1 - attractiveness) * self.continue_after_skip()
        onward += attractiveness * self.continue_after_click(relevance)
        examination = np.ones_like(relevance)
        np.cumprod(onward[:, :-1], axis=1, out=examination[:, 1:])
        return examination
