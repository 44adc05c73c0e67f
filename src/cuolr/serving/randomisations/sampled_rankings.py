"""`plackett-luce:TEMPERATURE`: each list is drawn from a Plackett–Luce model of the scores."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from cuolr.config import Range
from cuolr.errors import InputError
from cuolr.policies.plackett_luce import sample_plackett_luce
from cuolr.serving.batch_ranker import RankedRequest
from cuolr.serving.shown_lists import RANDOMISATIONS, ListRandomisation, ShownList
from cuolr.types import Bools


@RANDOMISATIONS.register("plackett-luce")
@dataclass(frozen=True)
class SampledRankings(ListRandomisation):
    """P(d at position k | above) ∝ exp(score of d / temperature) over the documents that are not above.

    Attributes:
        temperature: In units of the model's scores; near 0 gives the model's own list.
    """

    temperature: float
    needs_scores = True

    @classmethod
    def parse(cls, amount: str) -> Self:
        """From a temperature."""
        try:
            temperature = float(amount)
        except ValueError:
            temperature = -1.0
        if temperature not in Range(above=0):
            raise InputError(f"plackett-luce: expected a temperature above 0, such as 0.5, found '{amount}'")
        return cls(temperature)

    def draw(self, ranked: RankedRequest, k: int, rng: np.random.Generator) -> ShownList:
        """A list drawn from all documents of the request."""
        assert ranked.scores is not None, "checked when the service starts"
        scores = ranked.scores[None].astype(np.float64) / self.temperature
        where: Bools = np.ones(scores.shape, np.bool_)
        length = min(k, scores.shape[1])
        ranking, propensity = sample_plackett_luce(scores, where, length, rng.random(scores.shape))
        return ShownList(ranking[0], propensity[0])
