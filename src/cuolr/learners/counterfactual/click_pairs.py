"""Pairs of a clicked and a skipped document, counted over the sessions of a list."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from cuolr.logs.clicklog import ClickLog
from cuolr.types import Doubles, Ints

# Sessions whose pairs are made at a time.
SESSIONS_AT_A_TIME = 1 << 16


@dataclass(frozen=True)
class ClickPairs:
    """P pairs of positions in L lists.

    Attributes:
        first: [L] a session that shows each list.
        list: [P] the list.
        clicked: [P] the position of the clicked document, from 0.
        skipped: [P] the position of the document that was not clicked.
        weight: [P] Σ over the sessions with this pair of the reward of the click / the ideal DCG of the clicks.
    """

    first: Ints
    list: Ints
    clicked: Ints
    skipped: Ints
    weight: Doubles

    @classmethod
    def of(cls, log: ClickLog) -> Self:
        """Count the pairs of sessions, raw or counted. A session without a click, or without a skip, has none."""
        _, first, of_session = np.unique(
            np.column_stack([log.query, log.ranking]), axis=0, return_index=True, return_inverse=True
        )
        of_session, k = of_session.ravel(), log.k
        ideal = np.concatenate([[1.0], np.cumsum(1 / np.log2(np.arange(k) + 2))])
        parts = []
        for start in range(0, len(log), SESSIONS_AT_A_TIME):
            rows = slice(start, start + SESSIONS_AT_A_TIME)
            clicks = log.clicks[rows] > 0
            session, clicked = np.nonzero(clicks)
            of_click, skipped = np.nonzero((log.where[rows] & ~clicks)[session])
            rewards = log.rewards[rows][session, clicked] * log.count[rows][session]
            weight = (rewards / ideal[clicks.sum(axis=1)[session]])[of_click]
            of_list = of_session[rows][session][of_click].astype(np.int64)
            parts.append(_summed((of_list * k + clicked[of_click]) * k + skipped, weight.astype(np.float64)))
        pair, weight = _summed(*(np.concatenate(values) for values in zip(*parts, strict=True)))
        place, skipped = np.divmod(pair, k)
        return cls(first, *np.divmod(place, k), skipped, weight)


def _summed(pair: Ints, weight: Doubles) -> tuple[Ints, Doubles]:
    distinct, place = np.unique(pair, return_inverse=True)
    return distinct, np.bincount(place, weights=weight, minlength=len(distinct)).astype(np.float64)
