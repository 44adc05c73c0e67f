"""`swap-neighbours:SHARE`: in a share of the lists, two neighbouring documents are swapped."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from cuolr.errors import problems_in
from cuolr.serving.batch_ranker import RankedRequest
from cuolr.serving.shown_lists import RANDOMISATIONS, ListRandomisation, ShownList, as_ranked, parse_share
from cuolr.types import Doubles

# With more, lists with a swap would be the rule.
MAX_SHARE = 0.5


@RANDOMISATIONS.register("swap-neighbours")
@dataclass(frozen=True)
class SwapNeighbours(ListRandomisation):
    """Swaps one pair of neighbours, each of the k − 1 pairs as often, in a share p of the lists.

    This is the randomisation that identifies position bias at the least cost (Joachims et al. 2017, section 5.3). A
    swap at pair j shows in position j first. With q = p / (k − 1), a list that is as ranked above position j is not
    swapped yet with probability 1 − j·q (positions from 0), so that

        P(ranked document at j | as ranked above) = 1 − q / (1 − j·q),   P(its neighbour at j | …) = q / (1 − j·q),

    and 1 after the swap and at the last position.

    Attributes:
        share: p.
    """

    share: float

    @classmethod
    def parse(cls, amount: str) -> Self:
        """From a share, such as 5% or 0.05."""
        with problems_in("swap-neighbours"):
            return cls(parse_share(amount, MAX_SHARE))

    @property
    def loss_bound(self) -> float:
        """Other lists are as they were: at most the share of the clicks is lost."""
        return self.share

    def draw(self, ranked: RankedRequest, k: int, rng: np.random.Generator) -> ShownList:
        """The model's list, or one with a swap."""
        length = len(ranked.ranking)
        if length < 2:
            return as_ranked(ranked)
        pair = int(rng.integers(length - 1)) if rng.random() < self.share else None
        return ShownList(_swapped(ranked, pair).ranking, swap_propensity(self.share, length, pair))


def swap_propensity(share: float, length: int, pair: int | None) -> Doubles:
    """[length] the probability of each document given those above.

    >>> swap_propensity(0.5, 3, None).tolist(), swap_propensity(0.5, 3, 0).tolist()
    ([0.75, 0.6666666666666667, 1.0], [0.25, 1.0, 1.0])

    Args:
        share: p, the share of lists with a swap.
        length: Length of the list, 2 or more.
        pair: Upper position of the swap, from 0; None = no swap.
    """
    each = share / (length - 1)
    swap_here = each / (1 - each * np.arange(length - 1))
    propensity = np.append(1 - swap_here, 1.0)
    if pair is not None:
        propensity[pair] = swap_here[pair]
        propensity[pair + 1 :] = 1.0
    return propensity


def _swapped(ranked: RankedRequest, pair: int | None) -> RankedRequest:
    if pair is None:
        return ranked
    ranking = ranked.ranking.copy()
    ranking[[pair, pair + 1]] = ranking[[pair + 1, pair]]
    return RankedRequest(ranking, ranked.scores)
