"""Lists and click patterns as few words of 64 bits: grouping and sorting by these is faster than by a column each."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cuolr.random import U64
from cuolr.types import Bools, Candidates, Ints

BITS = 64


@dataclass(frozen=True)
class PackedLists:
    """Packs a query and its list; words are in the order of the query, then of the document at each position.

    Attributes:
        query_bits: Bits of the number of a query.
        document_bits: Bits of the candidate at a position, from 1; 0 = nothing shown.
    """

    query_bits: int
    document_bits: int

    @classmethod
    def of(cls, candidates: Candidates) -> "PackedLists":
        """Wide enough for all lists of these candidates."""
        return cls(int(candidates.n_queries).bit_length(), max(int(candidates.sizes.max(initial=0)).bit_length(), 1))

    def pack(self, query: npt.NDArray[Any], ranking: npt.NDArray[Any]) -> list[npt.NDArray[np.uint64]]:
        """[m] each word of queries [m] and rankings [m, K]; further words are 0 where other rankings are longer."""
        words = [query.astype(U64) << U64(BITS - self.query_bits)]
        for position, (word, shift) in enumerate(self._places(ranking.shape[1])):
            if word == len(words):
                words.append(np.zeros(len(query), U64))
            words[word] |= (ranking[:, position].astype(U64) + U64(1)) << shift  # −1 becomes 0
        return words

    def unpack(
        self, words: npt.NDArray[np.uint64], k: int, dtype: npt.DTypeLike
    ) -> tuple[Ints, npt.NDArray[np.signedinteger[Any]]]:
        """The queries [m] and rankings [m, k] of words [m, W], which may be fewer than those of k positions."""
        ranking = np.full((len(words), k), -1, dtype)
        mask = U64((1 << self.document_bits) - 1)
        for position, (word, shift) in enumerate(self._places(k)):
            if word < words.shape[1]:
                ranking[:, position] = ((words[:, word] >> shift) & mask).astype(dtype)
                ranking[:, position] -= 1
        return (words[:, 0] >> U64(BITS - self.query_bits)).astype(np.int64), ranking

    def _places(self, k: int) -> Iterator[tuple[int, np.uint64]]:
        """The word of each position, and how far it is shifted; the first positions have the highest bits."""
        word, left = 0, BITS - self.query_bits
        for _ in range(k):
            if left < self.document_bits:
                word, left = word + 1, BITS
            left -= self.document_bits
            yield word, U64(left)


def packed_clicks(clicks: npt.NDArray[np.uint8 | np.float64]) -> npt.NDArray[np.uint64]:
    """[W, m] the clicks [m, K] as bits of words of 64, the first position as the lowest bit."""
    bits = np.packbits(clicks > 0, axis=1, bitorder="little")
    size = BITS // 8
    padded = np.zeros((len(bits), -(-bits.shape[1] // size) * size), np.uint8)
    padded[:, : bits.shape[1]] = bits
    return np.ascontiguousarray(padded.view("<u8").T, U64)


def unpacked_clicks(words: npt.NDArray[np.uint64], k: int) -> Bools:
    """[M, k] the inverse of `packed_clicks`; words [M, W], fewer than those of k positions if there are no clicks."""
    known = min(k, words.shape[1] * BITS)
    clicks = np.zeros((len(words), k), np.bool_)
    bits = np.ascontiguousarray(words, "<u8").view(np.uint8)
    clicks[:, :known] = np.unpackbits(bits, axis=1, count=known, bitorder="little")
    return clicks
