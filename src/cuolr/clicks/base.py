"""What every click model does: answer a ranked list with clicks, and say how likely each click was."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from cuolr.registry import Registry
from cuolr.types import Bools, Doubles, Floats, IntegerArray

CLICK_MODELS: Registry[type["ClickModel"]] = Registry("click model", package="cuolr.clicks")


def relevance_of(grades: IntegerArray, max_grade: int) -> Floats:
    """The relevance of a grade r, (2^r − 1) / (2^r_max − 1), between 0 and 1 whatever the number of grades.

    >>> print(relevance_of(np.array([0, 1, 4]), max_grade=4).round(3))
    [0.    0.067 1.   ]
    """
    return ((np.exp2(grades) - 1) / (2**max_grade - 1)).astype(np.float32)


@dataclass(frozen=True)
class ClickModel(ABC):
    """A user who looks at a ranked list and clicks: P(C_k = 1) = examination(R, k) · attractiveness(d_k).

    Section 3.1, definition 3.1. A model is its own config: frozen, with the parameters as fields.

    Attributes:
        noise: ε, the attractiveness of an irrelevant document.
    """

    noise: float = 0.1

    def attractiveness(self, relevance: Floats) -> Floats:
        """α(d) = ε + (1 − ε)·relevance, section 5.1."""
        return (self.noise + (1 - self.noise) * relevance).astype(np.float32)

    def sample(self, relevance: Floats, where: Bools, rng: np.random.Generator) -> tuple[Bools, Bools]:
        """Clicks and examination [B, K] of one session per list, with randomness from `rng`."""
        return self.respond(relevance, where, rng.random((*relevance.shape, 2), dtype=np.float32))

    @abstractmethod
    def respond(self, relevance: Floats, where: Bools, uniforms: Floats) -> tuple[Bools, Bools]:
        """Clicks and examination as a function of the lists and of the randomness, one session per list.

        A session depends on its own row alone, so a log is the same however it is cut into batches.

        Args:
            relevance: [B, K] between 0 and 1, see `relevance_of`.
            where: [B, K] true = a document is shown; real documents come first.
            uniforms: [B, K, 2] from [0, 1): the first decides attraction, the second examination.

        Returns:
            clicks: [B, K], false where nothing is shown.
            examination: [B, K] whether the user looked, false where nothing is shown.
        """

    @abstractmethod
    def click_probability(self, relevance: Floats, where: Bools) -> Doubles:
        """[B, K] the exact marginal P(C_k = 1), 0 where nothing is shown."""
