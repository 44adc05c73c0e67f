"""Random logging policies: one random order per query, or a new one in each session."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from cuolr.config import Range, check_arguments
from cuolr.policies.policy import POLICIES, ScoringPolicy
from cuolr.random import DEFAULT_SEED, U64, mixed
from cuolr.types import Candidates, Doubles, Floats, IntegerArray


@POLICIES.register("random")
@dataclass(frozen=True)
class RandomPolicy(ScoringPolicy):
    """Ranks each query in one random order, which depends only on the seed and the query's id.

    The order does not depend on the other queries that are ranked with it.
    """

    seed: int = DEFAULT_SEED

    def score(self, candidates: Candidates) -> Floats:
        """[n_documents] uniform in [0, 1)."""
        starts = np.array([self._start_of(query_id) for query_id in candidates.query_ids.tolist()], U64)
        indices = np.arange(candidates.n_documents) - np.repeat(candidates.offsets[:-1], candidates.sizes)
        return _uniforms(np.repeat(starts, candidates.sizes), indices.astype(U64))

    def _start_of(self, query_id: str) -> int:
        """The start of the query's stream of random numbers."""
        return int.from_bytes(blake2b(f"{self.seed}:{query_id}".encode(), digest_size=8).digest(), "little")

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """No arrays: nothing is learned."""
        return {}

    def settings(self) -> dict[str, Any]:
        """The seed."""
        return {"seed": self.seed}

    @classmethod
    def from_parts(cls, arrays: Mapping[str, npt.NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        """The policy with this seed."""
        check_arguments(seed=(settings["seed"], Range()))
        return cls(int(settings["seed"]))


@dataclass(frozen=True)
class UniformLogger:
    """A logging policy that draws a new order in each session, all orders equally likely; see `sample_uniformly`."""


def sample_uniformly(
    sizes: IntegerArray, k: int, uniforms: npt.NDArray[np.floating]
) -> tuple[npt.NDArray[np.int32], Doubles]:
    """Draw one ranking per row, uniformly over all ordered lists of k documents.

    The first k steps of a Fisher–Yates shuffle (Durstenfeld, 1964): step p swaps position p with a random position
    from p on. Only swapped positions are stored, so a row costs k² steps, independent of its number of documents.

    Args:
        sizes: [B] the number of documents.
        k: Length of the lists.
        uniforms: [B, k] random numbers from [0, 1).

    Returns:
        ranking: [B, k] candidate indices, −1 after the last document.
        propensity: [B, k] the probability of each document given those placed above it; 1 where there is none.
    """
    positions = np.arange(k, dtype=np.int32)
    left = np.maximum(sizes[:, None] - positions, 1)
    place = ((uniforms * left).astype(np.int32) + positions).T.copy()
    indices, put_there = place.copy(), np.empty_like(place)
    for p in range(k):
        # The document at p: its own, or the last one swapped there; the same for the drawn position.
        put_there[p] = p
        for earlier in range(p):
            np.copyto(put_there[p], put_there[earlier], where=place[earlier] == p)
            np.copyto(indices[p], put_there[earlier], where=place[earlier] == place[p])
    return np.where(positions < sizes[:, None], indices.T, np.int32(-1)), 1 / left


def _uniforms(start: npt.NDArray[np.uint64], index: npt.NDArray[np.uint64]) -> Floats:
    """The numbers at `index` of the streams that start at `start`, by SplitMix64 (Steele et al., 2014).

    The generator can jump to any of its numbers, so that all documents of all queries are drawn in one call.
    """
    bits = mixed(start + (index + U64(1)) * U64(0x9E3779B97F4A7C15))
    # The 24 highest bits: the precision of a float32 below 1.
    uniforms: Floats = (bits >> U64(40)).astype(np.float32) * np.float32(2**-24)
    return uniforms
