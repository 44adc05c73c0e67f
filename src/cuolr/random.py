"""Counter-based random numbers: mixed bits, and permutations that take no memory."""

import numpy as np
import numpy.typing as npt

from cuolr.types import IntegerArray, Ints

# Seed of everything random, unless another is given.
DEFAULT_SEED = 1
# Seed of estimates and intervals whose randomness is no choice of the user, so that each is the same for the same data.
FIXED_SEED = 0

U64 = np.uint64
ROUNDS = 6


def mixed(bits: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The finaliser of SplitMix64 (Steele et al., 2014): maps nearby numbers to unrelated ones."""
    bits = (bits ^ (bits >> U64(30))) * U64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> U64(27))) * U64(0x94D049BB133111EB)
    return bits ^ (bits >> U64(31))


def shuffled(places: IntegerArray, n: int, seed: int, number: int) -> Ints:
    """The elements at these places of a random permutation of 0 … n − 1.

    A Feistel network (Luby and Rackoff, 1988) permutes the numbers with an even count of bits, and is applied again
    to those that are n or more. So the permutation takes no memory, and no time for the places not asked for.

    >>> shuffled(np.arange(5), 5, seed=1, number=0).tolist(), shuffled(np.array([3]), 5, seed=1, number=0).tolist()
    ([1, 3, 4, 0, 2], [0])

    Args:
        places: Indices, each from 0 to n − 1.
        n: Length of the permutation.
        seed: Decides the permutation, together with `number`.
        number: Number of the permutation; each seed has many.
    """
    half = U64(max(1, (n - 1).bit_length() + 1) // 2)
    keys = np.random.SeedSequence(seed, spawn_key=(number,)).generate_state(ROUNDS, np.uint64).astype(U64)
    values = _permute(places.astype(U64), half, keys)
    while (outside := values >= U64(n)).any():
        values[outside] = _permute(values[outside], half, keys)
    return values.astype(np.int64)


def _permute(values: npt.NDArray[np.uint64], half: np.uint64, keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """A one-to-one map of the numbers of 2 · half bits."""
    mask = (U64(1) << half) - U64(1)
    left, right = values >> half, values & mask
    for key in keys:
        left, right = right, left ^ (mixed(right + key) & mask)
    permuted: npt.NDArray[np.uint64] = (left << half) | right
    return permuted
