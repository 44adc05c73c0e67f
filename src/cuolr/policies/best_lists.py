"""Planning: the lists of the highest value, by local search from a given order."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from cuolr.types import Bools, Doubles, Ints

# [B] the values of lists of documents with this attractiveness [B, k]; true = a document.
ListValue: TypeAlias = Callable[[Doubles, Bools], Doubles]

# Positions of lists that are evaluated at a time.
POSITIONS_AT_A_TIME = 1_000_000
# Smaller differences are rounding errors.
TOLERANCE = 1e-9
# Moves of a list, at most; far more than are needed.
MAX_MOVES = 200


def best_lists(value: ListValue, attractiveness: Doubles, sizes: Ints, k: int) -> tuple[Ints, Doubles]:
    """Lists that no single move improves, from the given order on.

    A move exchanges two documents, one of which may not be shown, or puts one elsewhere, so that those between move up
    or down. The best move is taken again and again. Where the given order is optimal, it stays.

    Args:
        value: The value of lists.
        attractiveness: [B, N] of the documents to choose from.
        sizes: [B] number of documents; any number may stand after them.
        k: Length of the lists.

    Returns:
        lists: [B, k] the places of the chosen documents in the given order; −1 after the last one.
        gain: [B] the relative gain in value over the given order; 0.05 = 5 % more.
    """
    number, pool = attractiveness.shape
    search = _Search(value, attractiveness, sizes, min(k, pool))
    orders = np.tile(np.arange(pool), (number, 1))
    start = search.values(np.arange(number), orders[:, None])[:, 0]
    values, rows = start.copy(), np.flatnonzero(sizes > 1)
    for _ in range(MAX_MOVES):
        rows = search.improve(rows, orders, values)
        if not len(rows):
            break
    lists = np.full((number, k), -1, np.int64)
    lists[:, : search.k] = np.where(np.arange(search.k) < sizes[:, None], orders[:, : search.k], -1)
    gain: Doubles = np.divide(values, start, out=np.ones_like(start), where=start > 0) - 1
    return lists, gain


@dataclass(frozen=True)
class _Search:
    """What is searched; see `best_lists`."""

    value: ListValue
    attractiveness: Doubles
    sizes: Ints
    k: int

    def improve(self, rows: Ints, orders: Ints, values: Doubles) -> Ints:
        """Take the best move of each of these rows, in place; returns the rows that a move improved."""
        moves = _moves(orders.shape[1], self.k)
        if not len(moves):
            return rows[:0]
        step = max(1, POSITIONS_AT_A_TIME // (len(moves) * self.k))
        improved = []
        for first in range(0, len(rows), step):
            block = rows[first : first + step]
            found = self.values(block, orders[block][:, moves])
            best = found.argmax(axis=1)
            found_best = found[np.arange(len(block)), best]
            better = found_best > values[block] + TOLERANCE
            changed = block[better]
            orders[changed] = np.take_along_axis(orders[changed], moves[best[better]], axis=1)
            values[changed] = found_best[better]
            improved.append(changed)
        return np.concatenate(improved) if improved else rows[:0]

    def values(self, rows: Ints, orders: Ints) -> Doubles:
        """[B, m] the values of the first k documents in m orders [B, m, N] of each row; −∞ of lists with a gap."""
        lists = orders[:, :, : self.k]
        number, of_each, k = lists.shape
        where = lists < self.sizes[rows, None, None]
        shown = np.take_along_axis(self.attractiveness[rows], lists.reshape(number, -1), axis=1)
        values = self.value(shown.reshape(-1, k), where.reshape(-1, k)).reshape(number, of_each)
        full = where.sum(axis=2) == np.minimum(self.sizes[rows], k)[:, None]
        no_gap = (where[:, :, :-1] >= where[:, :, 1:]).all(axis=2)
        of_lists: Doubles = np.where(full & no_gap, values, -np.inf)
        return of_lists


@lru_cache(maxsize=16)
def _moves(pool: int, k: int) -> Ints:
    """[m, N] the permutations of N places that change the first k by one move."""
    places, moves = np.arange(pool), []
    for one in range(k):
        for other in range(one + 1, pool):
            exchanged = places.copy()
            exchanged[[one, other]] = other, one
            moves.append(exchanged)
            if other > one + 1:
                moves.append(np.insert(np.delete(places, other), one, other))
                if other < k:
                    moves.append(np.insert(np.delete(places, one), other, one))
    return np.array(moves, np.int64).reshape(-1, pool)
