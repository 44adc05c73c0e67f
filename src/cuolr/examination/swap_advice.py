"""What to do to know examination: which neighbouring positions to swap, in how many sessions.

If the documents d and e at positions k and k + 1 are swapped in a share s of the sessions, both are clicked at both
positions, and the ratio r = χ(k + 1)/χ(k) is estimated from each of them (Joachims et al. 2017, section 5.3). With c_k
clicks per session at k, the effective clicks of one session are

I(s) = c_k · (1 − s)·s·r / (1 − s + s·r) + c_{k+1} · (1 − s)·s / (r·(1 − s) + s).

r is what is not known, but I has a minimum over r, about 2·s·√(c_k·c_{k+1}): the advice holds for every curve. Clicks
are 0 or 1: n sessions in which a document is clicked with probability p count as n·p/(1 − p) clicks, so that I is
divided by one minus the mean p of the clicks at the lower position. The variance of log r is one over the effective
clicks, that of log χ(K)/χ(1) the sum over the pairs, and swaps are spread over pairs so that this sum is reached with
the fewest.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import ndtri

from cuolr.examination.effects import without_click_above
from cuolr.examination.identifiability import Identifiability
from cuolr.logs.counts import ClickCounts
from cuolr.types import Doubles

# The curve is to be known within this, with 95 % confidence at each position.
PRECISION = 0.1
CONFIDENCE = 0.95
# Variance of log χ(k)/χ(1) that this means.
TARGET_VARIANCE = (math.log(1 + PRECISION) / float(ndtri((1 + CONFIDENCE) / 2))) ** 2
# Shares of the sessions that may be swapped, and the time after which the next larger one is recommended.
SHARES = (0.01, 0.02, 0.05, 0.1, 0.2)
SHARE_WITHOUT_TIMES = 0.1
DAYS = 14.0
# Ratios of the examination of neighbours over which the worst case is taken.
RATIOS = np.geomspace(0.01, 10.0, 200)
# Click probabilities above this count as this.
MAX_CLICK_PROBABILITY = 0.8
# Times that the number of sessions and the shares are made consistent.
ROUNDS = 50


@dataclass(frozen=True)
class Swap:
    """Sessions in which the documents at two neighbouring positions are swapped.

    Attributes:
        first: The upper position, from 0.
        effective_clicks: What the log has already, of clicks without a click above.
        share: Share of the sessions to swap.
    """

    first: int
    effective_clicks: float
    share: float


@dataclass(frozen=True)
class SwapPlan:
    """Swaps after which the curve is known within `PRECISION` down to a position.

    Attributes:
        depth: Number of positions.
        share: Share of the sessions with a swap; each has one.
        sessions: Number of sessions that it takes, swapped or not.
        days: Days that it takes at the traffic of the log; None if the log has no times.
        swaps: What to swap; pairs that are known well enough are not in it.
    """

    depth: int
    share: float
    sessions: float
    days: float | None
    swaps: tuple[Swap, ...]


@dataclass(frozen=True)
class SwapAdvisor:
    """What decides how many swaps are needed.

    Attributes:
        clicks: [K] clicks per session at each position, of those without a click above.
        click_probability: [K] the mean click probability of the clicked documents there.
        links: [K − 1] effective clicks of neighbouring positions that the log has.
        sessions_of_query: The number of sessions of each query in the log.
        sessions_per_day: None if the log has no times.
    """

    clicks: Doubles
    click_probability: Doubles
    links: Doubles
    sessions_of_query: Doubles
    sessions_per_day: float | None = None

    @classmethod
    def of(cls, counts: ClickCounts, sessions_per_day: float | None = None) -> Self:
        """From the counts of a log: the clicks without a click above, from which the curve is estimated."""
        counts = without_click_above(counts)
        found = Identifiability.of(counts)
        clicks, shown = (counts.by_position(values)[:, : found.k] for values in (counts.clicks, counts.impressions))
        # Σ n·p² / Σ n·p, the mean click probability of a click; c·(c − 1)/(n − 1) estimates n·p² without bias.
        squares = clicks * np.maximum(clicks - 1, 0) / np.maximum(shown - 1, 1)
        mean = np.minimum(squares.sum(axis=0) / np.maximum(clicks.sum(axis=0), 1e-9), MAX_CLICK_PROBABILITY)
        sessions = np.bincount(counts.lists.query, weights=counts.lists.count).astype(np.float64)
        sessions = sessions[sessions > 0]
        rates = clicks.sum(axis=0) / max(float(sessions.sum()), 1.0)
        links = np.array([found.links[k][k + 1] for k in range(found.k - 1)])
        return cls(rates, mean, links, sessions, sessions_per_day)

    @property
    def depth(self) -> int:
        """The number of positions, from the first on, that have clicks."""
        return int(np.flatnonzero(np.append(self.clicks, 0.0) == 0)[0])

    def recommended(self, depth: int) -> SwapPlan:
        """The plan of the smallest share that takes at most `DAYS`; of the largest share if none does."""
        if self.sessions_per_day is None:
            return self.plan(depth, SHARE_WITHOUT_TIMES)
        plans = self.plans(depth)
        return next((plan for plan in plans if plan.days is not None and plan.days <= DAYS), plans[-1])

    def plans(self, depth: int) -> tuple[SwapPlan, ...]:
        """A plan for each share."""
        return tuple(self.plan(depth, share) for share in SHARES)

    def plan(self, depth: int, share: float) -> SwapPlan:
        """The fewest sessions with this share of swaps after which the first `depth` positions are known."""
        pairs = depth - 1
        shares = np.full(pairs, share / max(pairs, 1))
        sessions = 0.0
        for _ in range(ROUNDS):
            gain = np.array([self._effective_clicks_per_swap(k, shares[k]) for k in range(pairs)])
            swaps = _fewest_swaps(self.links[:pairs], gain * self._usable(sessions), TARGET_VARIANCE)
            before, sessions = sessions, float(swaps.sum()) / share
            if sessions == 0:
                break
            shares = swaps / sessions
            if abs(sessions - before) < 1e-3 * sessions:
                break
        days = None if self.sessions_per_day is None else sessions / self.sessions_per_day
        chosen = (Swap(k, float(self.links[k]), float(shares[k])) for k in range(pairs) if sessions and shares[k] > 0)
        return SwapPlan(depth, share, sessions, days, tuple(chosen))

    def _effective_clicks_per_swap(self, upper: int, share: float) -> float:
        """I(s)/s of this position and the next, for the ratio of examination that makes it least."""
        first = self.clicks[upper] * (1 - share) * RATIOS / (1 - share + share * RATIOS)
        second = self.clicks[upper + 1] * (1 - share) / ((1 - share) * RATIOS + share)
        return float((first + second).min() / (1 - self.click_probability[upper + 1]))

    def _usable(self, sessions: float) -> float:
        """The share of the sessions whose query is repeated in so many sessions, without which it compares nothing.

        Of the m sessions of a query, x are swapped, with E[x·(m − x)] = m²·s·(1 − s)·(1 − 1/m).
        """
        share = self.sessions_of_query / self.sessions_of_query.sum()
        repeated = share * max(sessions, float(self.sessions_of_query.sum()))
        return max(float(share @ np.maximum(1 - 1 / np.maximum(repeated, 1.0), 0.0)), 1e-3)


def _fewest_swaps(links: Doubles, gain: Doubles, variance: float) -> Doubles:
    """[pairs] swaps t of the smallest sum with Σ 1/(links + t·gain) ≤ variance.

    Where t > 0, all pairs have the same gain/(links + t·gain)² = μ (Lagrange): t = max(0, (√(gain/μ) − links)/gain).
    √(1/μ) is found by bisection.
    """

    def swaps(level: float) -> Doubles:
        return np.maximum(0.0, (np.sqrt(gain) * level - links) / gain)

    def reached(level: float) -> bool:
        known = links + swaps(level) * gain
        return bool((known > 0).all()) and float((1 / np.maximum(known, 1e-300)).sum()) <= variance

    if not len(links) or reached(0.0):
        return np.zeros(len(links))
    low, high = 0.0, 1.0
    while not reached(high):
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return swaps(high)


def depths(positions: int) -> Sequence[int]:
    """The depths to plan for: the first 3, 5 and 10 positions, and all of them.

    >>> depths(7)
    [3, 5, 7]
    """
    return [*(depth for depth in (3, 5, 10) if depth < positions), positions] if positions > 1 else []
