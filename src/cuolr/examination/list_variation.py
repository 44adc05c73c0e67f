"""How the lists of a query differ from session to session: not at all, by swaps of neighbours, or otherwise."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from cuolr.logs.clicklog import ClickLog

# Minimum share of the changed lists that are swaps of neighbours, for these to be called the source of variation.
MIN_SWAPS = 0.9


@dataclass(frozen=True)
class ListVariation:
    """How the lists of a log vary.

    Attributes:
        changed: Share of the sessions whose list is not the most frequent one of its query.
        swapped: Share of these in which two documents at neighbouring positions are swapped, and nothing else differs.
    """

    changed: float
    swapped: float

    @classmethod
    def of(cls, lists: ClickLog) -> Self:
        """The variation of the distinct lists of a log, with their number of sessions."""
        order = np.lexsort((-lists.count, lists.query))
        queries, first = np.unique(lists.query[order], return_index=True)
        usual = lists.ranking[order[first]][np.searchsorted(queries, lists.query)]
        differs = lists.ranking != usual
        upper = np.argmax(differs, axis=1)
        lower = np.minimum(upper + 1, lists.k - 1)
        rows = np.arange(len(lists))
        swapped = (differs.sum(axis=1) == 2) & differs[rows, lower]
        swapped &= (lists.ranking[rows, upper] == usual[rows, lower]) & (
            lists.ranking[rows, lower] == usual[rows, upper]
        )
        changed = float(lists.count @ differs.any(axis=1))
        return cls(changed / max(float(lists.count.sum()), 1.0), float(lists.count @ swapped) / max(changed, 1.0))

    @property
    def by_swaps(self) -> bool:
        """Whether lists vary by swaps of neighbours."""
        return self.changed > 0 and self.swapped >= MIN_SWAPS
