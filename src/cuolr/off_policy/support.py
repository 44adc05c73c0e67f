"""What a log can and cannot say of a policy's lists: the documents that were never shown, and those never placed so."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cuolr.random import U64, mixed
from cuolr.types import Bools, Doubles, IntegerArray, Ints

# Logged propensities that add up to this leave nothing for other documents; they may be stored in single precision.
ALL_PROBABILITY = 1 - 1e-4

# Bits of a key by which most keys are told apart.
LAST_BITS = 18

Keys = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Support:
    """What the log says of the target policy's lists, as shares of the sessions that show a position.

    A document is *unsupported* after those above it if the log does not show it there, and either never shows it for
    the query, or shows other documents there whose propensities add up to 1. The estimate then has no session for it,
    whatever the size of the log. It is *unobserved* if this log does not show it there, for whatever reason.

    Attributes:
        never_shown: Share of the policy's documents that the log never shows for their query.
        unsupported: [K] by level. `position`: the document at the position; `above`: it or one above; `list`: any.
        unobserved: [K] by level.
    """

    never_shown: float
    unsupported: Mapping[str, Doubles]
    unobserved: Mapping[str, Doubles]


@dataclass(frozen=True)
class ShownLists:
    """The logged lists, or the target policy's.

    Attributes:
        query: [M].
        ranking: [M, K] the candidate index of each document, −1 = nothing shown; documents come first.
        weight: [M] number of sessions.
    """

    query: IntegerArray
    ranking: IntegerArray
    weight: Doubles

    def prefixes(self) -> Keys:
        """[M, K + 1] a key of the query and of the documents down to each position; the first has no document."""
        keys = [mixed(self.query.astype(U64) + U64(1))]
        for position in range(self.ranking.shape[1]):
            keys.append(mixed(keys[-1] + self.ranking[:, position].astype(np.int64).astype(U64)))
        return np.stack(keys, axis=1)

    def places(self) -> tuple[Keys, Keys]:
        """[M, K] each: a key of the query and the position, and one of these and the document."""
        position = np.arange(self.ranking.shape[1]).astype(U64)
        place = mixed(mixed(self.query.astype(U64) + U64(1))[:, None] + position)
        return place, mixed(place + self.ranking.astype(np.int64).astype(U64))

    def documents(self) -> Keys:
        """[M, K] a key of the query and the document."""
        return mixed(mixed(self.query.astype(U64) + U64(1))[:, None] + self.ranking.astype(np.int64).astype(U64))


def support_of(logged: ShownLists, target: ShownLists, given_above: Doubles, marginal: Doubles | None) -> Support:
    """Compare a policy's lists with the logged ones.

    Args:
        logged: The logged lists.
        target: The lists that the policy shows for these queries.
        given_above: [M, K] logging propensities of the logged documents, given those above.
        marginal: [M, K] the same of the documents at their positions; None = not known.
    """
    shown, placed = logged.ranking >= 0, target.ranking >= 0
    places = _shown_at(logged, target.query) * placed * target.weight[:, None]  # [T, K] sessions that show the place
    never = ~_is_in(target.documents(), logged.documents()[shown])
    prefixes, of_target = logged.prefixes(), target.prefixes()
    new_below = ~_is_in(of_target[:, 1:], prefixes[:, 1:][shown])
    closed = _closed(of_target[:, :-1], prefixes[:, :-1][shown], prefixes[:, 1:][shown], given_above[shown])
    place, at_place = logged.places()
    target_place, target_at_place = target.places()
    new_there = ~_is_in(target_at_place, at_place[shown])
    full = np.zeros(never.shape, np.bool_)
    if marginal is not None:
        full = _closed(target_place, place[shown], at_place[shown], marginal[shown])

    sessions = float(logged.weight.sum())

    def shares(found: Bools) -> Doubles:
        total: Doubles = (found * places).sum(axis=0) / sessions
        return total

    def by_level(at_place: Bools, below: Bools) -> dict[str, Doubles]:
        above = np.logical_or.accumulate(below & (places > 0), axis=1)
        return {"position": shares(at_place), "above": shares(above), "list": shares(above | above[:, -1:])}

    return Support(
        never_shown=float((never * places).sum() / max(places.sum(), 1e-300)),
        unsupported=by_level(new_there & (never | full), new_below & (never | closed)),
        unobserved=by_level(new_there, new_below),
    )


def _shown_at(logged: ShownLists, queries: IntegerArray) -> Doubles:
    """[T, K] the share of a query's sessions that show a document at each position."""
    size = int(max(logged.query.max(initial=0), queries.max(initial=0))) + 1
    total = np.bincount(logged.query, weights=logged.weight, minlength=size)
    shown = (logged.ranking >= 0) * logged.weight[:, None]
    by_position = [np.bincount(logged.query, weights=column, minlength=size) for column in shown.T]
    shares: Doubles = (np.stack(by_position, axis=1) / np.maximum(total, 1e-300)[:, None])[queries]
    return shares


def _found(keys: Keys, distinct: Keys) -> tuple[Ints, Bools]:
    """Where each key is in a sorted array, and whether it is there."""
    place = np.minimum(np.searchsorted(distinct, keys), len(distinct) - 1)
    return place, distinct[place] == keys


def _is_in(asked: Keys, shown: Keys) -> Bools:
    """Whether each asked key is among the shown ones, of which there are many more: only the asked ones are sorted."""
    distinct, inverse = np.unique(asked, return_inverse=True)
    place, found = _found(shown[_may_be_in(shown, distinct)], distinct)
    is_shown = np.zeros(len(distinct), np.bool_)
    is_shown[place[found]] = True
    return is_shown[inverse].reshape(asked.shape)


def _may_be_in(keys: Keys, distinct: Keys) -> Ints:
    """Indices of the keys that may be among others: these have the same last bits. Much faster than a search."""
    known = np.zeros(1 << LAST_BITS, np.bool_)
    last = U64(len(known) - 1)
    known[distinct & last] = True
    return np.flatnonzero(known[keys & last])


def _closed(asked: Keys, place: Keys, document: Keys, propensity: Doubles) -> Bools:
    """Whether the documents shown at a place have all of its probability.

    Args:
        asked: Keys of places.
        place: [n] the place of each shown document.
        document: [n] the key of the place and the document.
        propensity: [n] its probability there.
    """
    distinct = np.unique(asked)
    of_interest = _may_be_in(place, distinct)
    of_interest = of_interest[_found(place[of_interest], distinct)[1]]
    if not len(of_interest):
        return np.zeros(asked.shape, np.bool_)
    _, first, of = np.unique(document[of_interest], return_index=True, return_inverse=True)
    mean = np.bincount(of, weights=propensity[of_interest]) / np.bincount(of)
    places, of_place = np.unique(place[of_interest][first], return_inverse=True)
    total = np.bincount(of_place, weights=mean)
    at, found = _found(asked, places)
    closed: Bools = found & (total[at] >= ALL_PROBABILITY)
    return closed
