"""Examination and continuation by position, estimated from lists in random order (result randomisation, appendix A).

In random order, the documents at all positions are equally attractive on average, so that differences in clicks are due
to examination. These estimates are unrelated to `logging_propensity`, the logging policy's probability of placing a
document.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import scipy

from cuolr.examination.propensities import Estimate, Propensities
from cuolr.logs.clicklog import ClickLog, require_single_sessions
from cuolr.logs.page_positions import at_page_positions, page_width
from cuolr.types import Bools, Doubles, Ints

# Returns the lists of a randomised log, block by block; called twice.
Blocks: TypeAlias = Callable[[], Iterable[ClickLog]]

# Number of bins of the probability of a later click; much finer than its standard error.
BINS = 4_096


def in_random_order(log: ClickLog) -> ClickLog:
    """The rows whose list was in random order; all rows if the log does not say."""
    return log if log.randomised is None else log.select(np.flatnonzero(log.randomised))


def random_lists(blocks: Blocks) -> Blocks:
    """The lists in random order of each block, with each document at its position on the page."""
    width = max(page_width(block) for block in blocks())
    return lambda: (at_page_positions(in_random_order(block), width) for block in blocks())


def estimate_propensities(blocks: Blocks) -> Propensities:
    """Estimate from lists in random order, table "Details for IPW and CM-IPW" of appendix A.

    examination         θ_k = Σ C_k / Σ C_1. If position 1 is never shown together with k, as where each list has one
                        document, the ratio of their click rates.
    continuation/paper  λ_k = 1 − |{s ∈ S_k: no click after k}| / |S_k|, S_k the sessions with a click at k. Biased
                        downwards: users who continued without another click are counted as having stopped.
    continuation/mle    The maximum likelihood estimate in the dependent click model: λ_k maximises
                        Π_{s ∈ S_k with a later click} λ_k · Π_{s ∈ S_k without} (1 − λ_k·q_s), where q_s, the
                        probability of a later click given continuation, is 1 − Π_{i>k} (1 − α(d_i)). The attractiveness
                        α(d) is the click rate of d where it was certainly examined: up to its list's first click.
                        Positions up to a *later* click were examined as well, but this is known only because one of
                        them was clicked, which would bias the rate.

    λ of the last position cannot be estimated from lists that end there.

    Deviation: the paper prints the inverse of θ_k. If lists differ in length, sums are over the sessions that show a
    document at k, or, for λ_k, after k: the others carry no information about it.

    Args:
        blocks: Returns raw sessions, all over the same candidates; they need not fit into memory.
    """
    counts = _Counts.of(blocks)
    chances = _chances_of_a_later_click(blocks, counts.attractiveness())
    return Propensities(
        examination=counts.examination(),
        continuation={"mle": _most_likely_continuation(counts.later, chances), "paper": counts.paper_continuation()},
        lists=counts.lists,
    )


@dataclass
class _Counts:
    """Sums over sessions: by position [K], and by document [n_documents].

    Attributes:
        lists: Number of sessions.
        shown: Sessions that show a document at k.
        together: Sessions that show documents at position 1 and at k.
        clicks: Clicks at k.
        first: Clicks at position 1, in sessions that show a document at k.
        both: Sessions with clicks at position 1 and at k.
        followed: Clicks at k with a document shown below.
        later: Clicks at k with a click below.
        examined: Sessions that show the document at or above their first click.
        attracted: Sessions whose first click is on the document.
    """

    lists: int
    shown: Ints
    together: Ints
    clicks: Ints
    first: Ints
    both: Ints
    followed: Ints
    later: Ints
    examined: Ints
    attracted: Ints

    @classmethod
    def of(cls, blocks: Blocks) -> "_Counts":
        total: _Counts | None = None
        for log in blocks():
            require_single_sessions(log, "estimating propensities")
            if total is None:
                by_position = (np.zeros(log.k, np.int64) for _ in range(7))
                total = cls(0, *by_position, *np.zeros((2, log.candidates.n_documents), np.int64))
            total._add(log)
        assert total is not None, "a log has at least one block"
        return total

    def _add(self, log: ClickLog) -> None:
        clicks, where = log.clicks.astype(np.bool_), log.where
        self.lists += len(log)
        self.shown += where.sum(axis=0)
        self.together += (where[:, :1] & where).sum(axis=0)
        self.clicks += clicks.sum(axis=0)
        self.first += (clicks[:, :1] & where).sum(axis=0)
        self.both += (clicks[:, :1] & clicks).sum(axis=0)
        followed = clicks[:, :-1] & _any_below(where)
        self.followed[:-1] += followed.sum(axis=0)
        self.later[:-1] += (followed & _any_below(clicks)).sum(axis=0)
        up_to_first = where & (np.cumsum(clicks, axis=1, dtype=np.int16) <= clicks)
        rows = _rows(log)
        self.examined += np.bincount(rows[up_to_first], minlength=len(self.examined))
        self.attracted += np.bincount(rows[up_to_first & clicks], minlength=len(self.attracted))

    def attractiveness(self) -> Doubles:
        """[n_documents] α; the overall mean for documents that were never certainly examined."""
        overall = self.attracted.sum() / max(self.examined.sum(), 1)
        return np.where(self.examined > 0, self.attracted / np.maximum(self.examined, 1), overall)

    def examination(self) -> Estimate:
        known = self.first > 0
        first = np.maximum(self.first, 1)
        ratio = self.clicks / first
        # The delta method: the variance of Σ (C_k − θ C_1) over (Σ C_1)².
        error = np.sqrt(self.clicks + ratio**2 * self.first - 2 * ratio * self.both) / first
        apart = (self.together == 0) & (self.clicks > 0) & (self.clicks[0] > 0)
        rate = self.clicks / np.maximum(self.shown, 1)
        relative = rate / max(rate[0], 1e-300)
        spread = (1 - rate) / np.maximum(self.clicks, 1)
        apart_error = relative * np.sqrt(spread + spread[0])
        return _estimate(np.where(apart, relative, ratio), np.where(apart, apart_error, error), known | apart)

    def paper_continuation(self) -> Estimate:
        share = self.later / np.maximum(self.followed, 1)
        error = np.sqrt(share * (1 - share) / np.maximum(self.followed, 1))
        return _estimate(share, error, self.followed > 0)


def _chances_of_a_later_click(blocks: Blocks, attractiveness: Doubles) -> Ints:
    """[K, BINS] the number of sessions whose last click is at k, by q_s, their probability of a later one."""
    skip = (1 - attractiveness).astype(np.float32)
    chances: Ints | None = None
    for log in blocks():
        if chances is None:
            chances = np.zeros(log.k * BINS, np.int64)
        clicks = log.clicks.astype(np.bool_)
        last = clicks.copy()
        last[:, :-1] &= ~_any_below(clicks)
        session, position = np.nonzero(last)
        skips = np.where(log.where, skip[_rows(log)], np.float32(1))
        # From the last position up: the probability of skipping all documents below.
        below = np.ones_like(skips)
        np.cumprod(skips[:, :0:-1], axis=1, out=below[:, -2::-1])
        chance = np.minimum(((1 - below[session, position]) * BINS).astype(np.int64), BINS - 1)
        # Sessions with no document below carry no information.
        followed = below[session, position] < 1
        chances += np.bincount((position * BINS + chance)[followed], minlength=len(chances))
    assert chances is not None
    return chances.reshape(-1, BINS)


def _most_likely_continuation(later: Ints, chances: Ints) -> Estimate:
    """The root in [0, 1] of d/dλ log-likelihood = later / λ − Σ q / (1 − λq), for each position separately."""
    q = (np.arange(BINS) + 0.5) / BINS

    def slope(continuation: float, k: int) -> float:
        return float(later[k] / continuation - (chances[k] * q / (1 - continuation * q)).sum())

    values, errors = np.zeros(len(later)), np.zeros(len(later))
    for k in np.flatnonzero(later).tolist():
        values[k] = scipy.optimize.brentq(slope, 1e-12, 1.0, args=(k,)) if slope(1.0, k) < 0 else 1.0
        information = later[k] / values[k] ** 2 + (chances[k] * (q / (1 - values[k] * q)) ** 2).sum()
        errors[k] = information**-0.5
    known = later + chances.sum(axis=1) > 0
    known[-1] = False
    return _estimate(values, errors, known)


def _estimate(values: Doubles, errors: Doubles, known: Bools) -> Estimate:
    def listed(numbers: Doubles) -> tuple[float | None, ...]:
        return tuple(float(number) if sure else None for number, sure in zip(numbers, known, strict=True))

    return Estimate(listed(values), listed(errors))


def _rows(log: ClickLog) -> Ints:
    """[M, K] the row of each shown document; an arbitrary row where there is none."""
    return log.candidates.offsets[log.query, None] + np.maximum(log.ranking, 0)


def _any_below(values: Bools) -> Bools:
    """[M, K − 1] whether any value below each position but the last is true."""
    below: Bools = np.logical_or.accumulate(values[:, :0:-1], axis=1)[:, ::-1]
    return below
