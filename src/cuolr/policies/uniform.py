"""A logging policy that knows nothing: a random order of each query's documents."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from cuolr.policies.base import POLICIES, ScoringPolicy
from cuolr.types import Candidates, Floats

U64 = np.uint64


@POLICIES.register("random")
@dataclass(frozen=True)
class RandomPolicy(ScoringPolicy):
    """Each query has one random order, which depends on the seed and the query's id alone.

    So it does not matter with which other queries it is ranked.
    """

    seed: int = 0

    def score(self, candidates: Candidates) -> Floats:
        """[n_documents] uniform in [0, 1)."""
        starts = np.array([self._start_of(query_id) for query_id in candidates.query_ids.tolist()], U64)
        slots = np.arange(candidates.n_documents) - np.repeat(candidates.offsets[:-1], candidates.sizes)
        return _uniforms(np.repeat(starts, candidates.sizes), slots.astype(U64))

    def _start_of(self, query_id: str) -> int:
        """Where the query's stream of random numbers starts."""
        return int.from_bytes(blake2b(f"{self.seed}:{query_id}".encode(), digest_size=8).digest(), "little")

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Nothing is learned."""
        return {}

    def settings(self) -> dict[str, Any]:
        """The seed."""
        return {"seed": self.seed}

    @classmethod
    def from_parts(cls, arrays: Mapping[str, npt.NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        """The policy with this seed."""
        return cls(int(settings["seed"]))


def _uniforms(start: npt.NDArray[np.uint64], index: npt.NDArray[np.uint64]) -> Floats:
    """The numbers at `index` of the streams that start at `start`, by SplitMix64 (Steele et al., 2014).

    A generator that can jump to any of its numbers, so that all documents of all queries are drawn in one go.
    """
    bits = start + (index + U64(1)) * U64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> U64(30))) * U64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> U64(27))) * U64(0x94D049BB133111EB)
    bits ^= bits >> U64(31)
    # The 24 highest bits: as many as a float32 can hold below 1.
    uniforms: Floats = (bits >> U64(40)).astype(np.float32) * np.float32(2**-24)
    return uniforms
