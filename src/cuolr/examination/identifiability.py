"""Whether documents shown at several positions separate position bias from relevance: the one criterion.

Positions are the nodes of a graph. Documents clicked at two positions link them: a document with a clicks at one and b
at the other estimates the log ratio of their examination with variance 1/a + 1/b, so it counts as a·b/(a + b) effective
clicks. Examination is identified up to one factor for each connected component of the graph (Chen et al. 2023,
arXiv:2309.15560); a component that has nearly all clicks suffices in practice.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Self, TypeAlias

import numpy as np

from cuolr.logs.clicklog import ClickLog
from cuolr.logs.counts import ClickCounts
from cuolr.logs.page_positions import DISTINCT_POSITIONS
from cuolr.types import Doubles, IntegerArray, Ints

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


# Effective clicks that connect two positions: the standard error of the ratio of their examination is 10 %.
MIN_SHARED_CLICKS = 100
# Minimum share of the clicks at connected positions, for examination to be identifiable.
MIN_JOINED_SHARE = 0.95
# Minimum share of the clicks on documents shown at several positions, for an estimate to use them even if they do not
# identify examination: it is then noisy, but features alone are worse if the logging policy is strong.
MIN_SHARE_TO_USE = 0.5
# More sessions like those of the log are advised, if up to this many times as many identify examination.
MAX_TIMES_AS_MANY = 10
# Number of positions whose examination is estimated; positions below have that of the last one.
MAX_POSITIONS = DISTINCT_POSITIONS

Verdict: TypeAlias = Literal["yes", "in part", "no", "not applicable"]


@dataclass(frozen=True)
class Link:
    """Two positions, from 0, and the effective clicks on documents clicked at both."""

    first: int
    second: int
    clicks: float

    def __str__(self) -> str:
        return f"positions {self.first + 1} and {self.second + 1}, {self.clicks:,.0f} effective clicks"


@dataclass(frozen=True)
class Identifiability:
    """Whether clicks on documents shown at several positions determine the examination of nearly all positions.

    Attributes:
        clicks: [K] number of clicks at each position.
        links: [K][K] effective clicks on documents clicked at both positions; 0 on the diagonal.
        share_at_several_positions: Share of the clicks on documents that were shown at several positions.
    """

    clicks: tuple[float, ...]
    links: tuple[tuple[float, ...], ...]
    share_at_several_positions: float

    @classmethod
    def of(cls, counts: ClickCounts, lists: Ints | None = None) -> Self:
        """The identifiability of a log.

        Args:
            counts: The counts of the log.
            lists: The lists to count; None = all.
        """
        kept = np.ones(len(counts.lists), np.bool_) if lists is None else np.zeros(len(counts.lists), np.bool_)
        kept[slice(None) if lists is None else lists] = True
        parts = []
        for part in counts.parts():
            row, position, _ = counts.coordinates(part)
            of_lists = kept[row]
            key = counts.document(row, position)[of_lists] * counts.lists.k + position[of_lists]
            keys, place = np.unique(key, return_inverse=True)
            parts.append((keys, np.bincount(place, weights=counts.clicks[part][of_lists], minlength=len(keys))))
        keys, clicks = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        return cls.of_documents(*np.divmod(keys, counts.lists.k), clicks)

    @classmethod
    def of_documents(cls, document: IntegerArray, position: IntegerArray, clicks: Doubles) -> Self:
        """The identifiability of a log, from counts of (document, position); they may be in parts.

        Args:
            document: [n] a document that was shown.
            position: [n] where it was shown, from 0.
            clicks: [n] the number of clicks on it there, 0 or more.
        """
        top = position < MAX_POSITIONS
        document, position, clicks = document[top], position[top].astype(np.int64), clicks[top]
        k = int(position.max(initial=0)) + 1
        keys, place = np.unique(document.astype(np.int64) * k + position, return_inverse=True)
        sums = np.bincount(place, weights=clicks, minlength=len(keys))
        of_document, at = np.divmod(keys, k)
        _, number, shown_at = np.unique(of_document, return_inverse=True, return_counts=True)
        several = shown_at[number] > 1
        clicked = several & (sums > 0)
        _, row = np.unique(number[clicked], return_inverse=True)
        shared = np.zeros((int(row.max(initial=-1)) + 1, k))
        shared[row, at[clicked]] = sums[clicked]
        return cls(
            clicks=tuple(np.bincount(at, weights=sums, minlength=k).tolist()),
            links=tuple(map(tuple, _effective_clicks(shared).tolist())),
            share_at_several_positions=float(sums[several].sum() / max(sums.sum(), 1e-9)),
        )

    @property
    def k(self) -> int:
        """K, the number of positions."""
        return len(self.clicks)

    @cached_property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Positions with clicks, from 0, connected by links of `MIN_SHARED_CLICKS`; the group of most clicks first."""
        clicks, component = np.array(self.clicks), np.arange(self.k)
        for link in self._strongest_first():
            if link.clicks < MIN_SHARED_CLICKS:
                break
            component[component == component[link.second]] = component[link.first]
        members = [np.flatnonzero(component == number) for number in np.unique(component[clicks > 0])]
        members.sort(key=lambda group: (-clicks[group].sum(), int(group[0])))
        return tuple(tuple(group.tolist()) for group in members)

    @cached_property
    def thinnest_link(self) -> Link | None:
        """The link by which connected positions come to have nearly all clicks, if stronger links are used first.

        This is the weakest link of the maximum spanning tree of these positions: no other way of connecting them has a
        stronger weakest link. None if fewer than two positions have clicks.
        """
        clicks, component = np.array(self.clicks), np.arange(self.k)
        if (clicks > 0).sum() < 2:
            return None
        for link in self._strongest_first():
            component[component == component[link.second]] = component[link.first]
            joined = component == component[link.first]
            if clicks[joined].sum() >= MIN_JOINED_SHARE * clicks.sum():
                return link
        raise AssertionError("all positions are connected in the end")

    def _strongest_first(self) -> Iterator[Link]:
        """All pairs of positions; of pairs with equal links, neighbours first, and positions with many clicks."""

        def order(pair: tuple[int, int]) -> tuple[float, int, float]:
            first, second = pair
            return -self.links[first][second], second - first, -min(self.clicks[first], self.clicks[second])

        for first, second in sorted(itertools.combinations(range(self.k), 2), key=order):
            yield Link(first, second, self.links[first][second])

    @property
    def identifiable(self) -> bool:
        """Whether links of `MIN_SHARED_CLICKS` connect positions with `MIN_JOINED_SHARE` of the clicks."""
        return self.thinnest_link is not None and self.thinnest_link.clicks >= MIN_SHARED_CLICKS

    @property
    def times_as_many(self) -> float | None:
        """How many times as many sessions like these identify examination, where lists vary enough; else None.

        Effective clicks are proportional to sessions, and grow faster while documents have no click at a position yet.
        """
        link = self.thinnest_link
        if link is None or self.identifiable or self.share_at_several_positions < MIN_SHARE_TO_USE:
            return None
        times = MIN_SHARED_CLICKS / max(link.clicks, 1e-9)
        return times if times <= MAX_TIMES_AS_MANY else None

    @property
    def informative(self) -> bool:
        """Whether documents shown at several positions are used to estimate examination, identifiable or not."""
        return self.identifiable or self.share_at_several_positions >= MIN_SHARE_TO_USE

    @property
    def verdict(self) -> Verdict:
        """Whether position bias is identifiable; in part = within groups of positions only."""
        if self.k < 2:
            return "not applicable"
        if self.identifiable:
            return "yes"
        return "in part" if any(len(group) > 1 for group in self.groups) else "no"

    def in_words(self) -> str:
        """The verdict with its reason, without a full stop."""
        share = f"{self.share_at_several_positions:.1%} of the clicks are on documents shown at several positions"
        if self.k < 2:
            return "not applicable, documents were shown at one position only"
        if self.share_at_several_positions == 0:
            return (
                "no, no click is on a document shown at several positions, so that a click rate may be due to position "
                "bias or to relevance; only features that documents share can separate them"
            )
        if self.identifiable:
            return f"yes, {share}; the thinnest link is that of {self.thinnest_link}"
        needed = f"the thinnest link is that of {self.thinnest_link}, of {MIN_SHARED_CLICKS} needed"
        if self.verdict == "no":
            return f"no, {share}, too few to compare positions; {needed}"
        named = ", ".join(map(positions_text, self.groups))
        return (
            f"in part, {share}, but the positions form {len(self.groups)} groups ({named}); position bias can be "
            f"compared within a group, and between groups only through features; {needed}"
        )

    def as_dict(self) -> dict[str, Any]:
        """As JSON values, with positions from 1."""
        link = self.thinnest_link
        return {
            "verdict": self.verdict,
            "identifiable": self.identifiable,
            "in_words": self.in_words(),
            "share_of_clicks_at_several_positions": self.share_at_several_positions,
            "groups": [[position + 1 for position in group] for group in self.groups],
            "thinnest_link": None
            if link is None
            else {"positions": [link.first + 1, link.second + 1], "effective_clicks": link.clicks},
            "effective_clicks": [list(row) for row in self.links],
        }


def positions_text(positions: tuple[int, ...]) -> str:
    """Positions for people, from 1.

    >>> positions_text((0, 1, 2, 4))
    '1–3 and 5'
    """
    runs = np.split(np.array(positions), np.flatnonzero(np.diff(positions) > 1) + 1)
    return " and ".join(f"{run[0] + 1}–{run[-1] + 1}" if len(run) > 1 else f"{run[0] + 1}" for run in runs)


def _effective_clicks(shared: Doubles) -> Doubles:
    """[K, K] Σ_d a·b/(a + b) of the clicks [D, K] on documents; 0 on the diagonal."""
    k = shared.shape[1]
    links = np.zeros((k, k))
    for first, second in itertools.combinations(range(k), 2):
        a, b = shared[:, first], shared[:, second]
        links[first, second] = links[second, first] = (a * b / np.maximum(a + b, 1e-9)).sum()
    return links
