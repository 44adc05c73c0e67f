"""Counts of (list, last click), or (document, position, last click above): what click models are fitted to.

The former suffice for users who examine from the top, the latter for those whom the last click alone affects.

Above the last click of a session all is observed: each document was examined, and the user continued. Only below it
something is hidden. So sessions of one list and last click are one row, whatever their other clicks; these are counts
by document and position, which no step of fitting changes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np
import numpy.typing as npt
import polars as pl

from cuolr.types import Bools, Doubles, Ints


@dataclass(frozen=True)
class Tails:
    """What is below the last clicks: n pairs of a list and a start, of which sessions show nothing but skips.

    Sessions whose last click has no document below it have no tail.

    Attributes:
        documents: [K, L] the lists, an index into the pairs; P, their number, where nothing is shown. In ascending
            order of the first tail that starts in a list.
        informative: [K, L] true = a document is here, and another one below it.
        unit: [L] what is resampled, see `ClickPatterns.unit`.
        row: [n] the list of each tail, ascending.
        start: [n] the position below the last click, from 0; 0 = no click.
        pair: [n] the document of the last click; P without a click.
        count: [n] number of sessions.
    """

    documents: Ints
    informative: Bools
    unit: Ints
    row: Ints
    start: Ints
    pair: Ints
    count: Doubles

    def weighted(self, weights: Doubles) -> Self:
        """The counts with each unit multiplied by its weight; lists of weight 0 are left out."""
        kept = weights[self.unit] > 0
        of_kept = kept[self.row]
        row = (np.cumsum(kept) - 1)[self.row[of_kept]]
        unit = self.unit[kept]
        return replace(
            self,
            documents=self.documents[:, kept],
            informative=self.informative[:, kept],
            unit=unit,
            row=row,
            start=self.start[of_kept],
            pair=self.pair[of_kept],
            count=self.count[of_kept] * weights[unit[row]],
        )


@dataclass(frozen=True)
class ClicksAbove:
    """The clicks above a last click, by document and position; n that occur.

    Attributes:
        pair: [n] the number of the query–document pair.
        position: [n] from 0.
        unit: [n] what is resampled, see `ClickPatterns.unit`.
        count: [n] number of sessions.
    """

    pair: Ints
    position: Ints
    unit: Ints
    count: Doubles

    def weighted(self, weights: Doubles) -> Self:
        """The counts with each unit multiplied by its weight."""
        return replace(self, count=self.count * weights[self.unit])


@dataclass(frozen=True)
class LastClicks:
    """What is known down to the last clicks of a log, of n pairs and units; and the tails below.

    Attributes:
        pair: [n] the number of the query–document pair.
        unit: [n] what is resampled, see `ClickPatterns.unit`.
        clicks: [n] number of sessions with a click on the document.
        skips: [n] number of sessions without a click on it, and with one below.
        above: The clicks that are not the last.
        tails: What is below the last clicks.
    """

    pair: Ints
    unit: Ints
    clicks: Doubles
    skips: Doubles
    above: ClicksAbove
    tails: Tails

    @classmethod
    def of(cls, documents: Ints, clicks: Bools, count: Doubles, unit: Ints, pairs: int) -> Self:
        """Count click patterns.

        Args:
            documents: [M, K] indices of pairs; −1 = nothing shown.
            clicks: [M, K].
            count: [M] number of sessions.
            unit: [M] what is resampled.
            pairs: P.
        """
        k = documents.shape[1]
        start = np.max(np.where(clicks, np.arange(1, k + 1), 0), axis=1, initial=0)
        row, position = np.nonzero((documents >= 0) & (np.arange(k) < start[:, None]))
        pair, clicked, number = documents[row, position], clicks[row, position], count[row]
        key, sums = summed(unit[row] * pairs + pair, clicks=number * clicked, skips=number * ~clicked)
        of_cell, pair_of_cell = np.divmod(key, pairs)
        earlier = clicked & (position < start[row] - 1)
        places = (unit[row] * pairs + pair)[earlier] * k + position[earlier]
        above, numbers = summed(places, count=number[earlier])
        place, position = np.divmod(above, k)
        unit_above, pair_above = np.divmod(place, pairs)
        return cls(
            pair_of_cell,
            of_cell,
            sums["clicks"],
            sums["skips"],
            ClicksAbove(pair_above, position, unit_above, numbers["count"]),
            _tails(documents, start, count, unit, pairs),
        )

    def weighted(self, weights: Doubles) -> Self:
        """The counts with each unit multiplied by its weight."""
        factor = weights[self.unit]
        return replace(
            self,
            clicks=self.clicks * factor,
            skips=self.skips * factor,
            above=self.above.weighted(weights),
            tails=self.tails.weighted(weights),
        )


def summed(key: Ints, **values: Doubles) -> tuple[Ints, dict[str, Doubles]]:
    """The distinct keys, ascending, and the sums of the values of each."""
    order = np.argsort(key, kind="stable")
    key = key[order]
    start = np.flatnonzero(np.append(True, key[1:] != key[:-1])[: len(key)])
    return key[start], {name: np.add.reduceat(of_each[order], start) for name, of_each in values.items()}


def _tails(documents: Ints, start: Ints, count: Doubles, unit: Ints, pairs: int) -> Tails:
    k, where = documents.shape[1], documents >= 0
    below = np.max(np.where(where, np.arange(1, k + 1), 0), axis=1, initial=0) > start
    documents, start, count, unit = documents[below], start[below], count[below], unit[below]
    row, first = _distinct(documents, unit)
    # Lists whose first tail starts at the same position are together, so that fitting can pass over what is above it.
    earliest = np.full(len(first), k)
    np.minimum.at(earliest, row, start)
    order = np.argsort(earliest, kind="stable")
    row = np.argsort(order, kind="stable")[row]
    key, sums = summed(row * k + start, count=count)
    row, start = np.divmod(key, k)
    lists = np.where(documents >= 0, documents, pairs)[first[order]].T
    shown = lists < pairs
    informative = np.zeros(shown.shape, np.bool_)
    informative[:-1] = shown[:-1] & np.logical_or.accumulate(shown[:0:-1])[::-1]
    clicked = np.where(start > 0, lists[start - 1, row], pairs)
    return Tails(
        documents=np.ascontiguousarray(lists),
        informative=informative,
        unit=unit[first[order]],
        row=row,
        start=start,
        pair=clicked,
        count=sums["count"],
    )


def _distinct(documents: Ints, unit: Ints) -> tuple[Ints, Ints]:
    """[M] the number of the list and unit of each row, and [L] a row of each number."""
    columns: dict[str, npt.NDArray[np.int64]] = {str(k): documents[:, k] for k in range(documents.shape[1])}
    frame = pl.DataFrame({"unit": unit, **columns}).with_row_index("row")
    rows = frame.group_by(["unit", *columns], maintain_order=True).agg(pl.col("row"))["row"]
    sizes = rows.list.len().to_numpy().astype(np.int64)
    members = rows.explode().to_numpy().astype(np.int64)
    number = np.empty(len(documents), np.int64)
    number[members] = np.repeat(np.arange(len(sizes)), sizes)
    return number, members[np.cumsum(sizes) - sizes]


@dataclass(frozen=True)
class PatternCells:
    """Impressions and clicks of each (document, position, last click above), of n that occur.

    They suffice for click models in which a click depends on the clicks above through the last one only.

    Attributes:
        pair: [n] the number of the query–document pair.
        position: [n] from 0.
        last_click: [n] the position of the last click above, from 1; 0 = none.
        unit: [n] what is resampled, see `ClickPatterns.unit`.
        impressions: [n] number of sessions.
        clicks: [n] number of these sessions with a click on the document.
    """

    pair: Ints
    position: Ints
    last_click: Ints
    unit: Ints
    impressions: Doubles
    clicks: Doubles

    @classmethod
    def of_keys(cls, key: Ints, sums: Mapping[str, Doubles], sizes: tuple[int, int, int]) -> Self:
        """The cells of unit · sizes + (pair, position, last click), and their sums."""
        unit, place = np.divmod(key, int(np.prod(sizes)))
        pair, position, last = (index.astype(np.int64) for index in np.unravel_index(place, sizes))
        return cls(pair, position, last, unit, sums["impressions"], sums["clicks"])

    def weighted(self, weights: Doubles) -> Self:
        """The counts with each unit multiplied by its weight."""
        factor = weights[self.unit]
        return replace(self, impressions=self.impressions * factor, clicks=self.clicks * factor)

    def select(self, cells: Bools) -> Self:
        """These cells only."""
        return type(self)(*(getattr(self, column.name)[cells] for column in fields(self)))

    def summed(self, position: bool) -> Self:
        """The sums over the last click above, which is then 0, and over positions unless they are kept."""
        place = self.position if position else np.zeros_like(self.position)
        sizes = (int(self.pair.max(initial=0)) + 1, int(place.max(initial=0)) + 1)
        key, sums = summed(
            (self.unit * sizes[0] + self.pair) * sizes[1] + place, impressions=self.impressions, clicks=self.clicks
        )
        rest, place = np.divmod(key, sizes[1])
        unit, pair = np.divmod(rest, sizes[0])
        return type(self)(pair, place, np.zeros_like(place), unit, sums["impressions"], sums["clicks"])
