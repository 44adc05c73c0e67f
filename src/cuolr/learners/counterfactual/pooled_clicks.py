"""Corrected clicks by document of a query, pooled over all lists that show it: a whole log in a row per query."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from cuolr.data.normalise import Normaliser
from cuolr.learners.factored.click_rates import ClickRates
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.scaled_documents import scaled_features
from cuolr.training.batches import WeightedLists
from cuolr.types import Bools, Doubles, IntegerArray, Ints


@dataclass(frozen=True)
class PooledClicks:
    """The corrected clicks of M lists, and the exposure that they come from.

    The corrected click rate of a document is the ratio of the two, each summed over the lists that show it.

    Attributes:
        lists: The lists.
        clicks: [M, K] the sum of the corrected clicks or rewards of the list's sessions.
        exposure: [M, K] the number of examinations that they come from.
        max_rate: The largest rate that a document can have: 1 for clicks, the largest reward of a click for rewards.
    """

    lists: WeightedLists
    clicks: Doubles
    exposure: Doubles
    max_rate: float = 1.0

    @classmethod
    def of(cls, lists: WeightedLists, max_rate: float = 1.0) -> Self:
        """The targets of the lists as corrected clicks, with an examination in each session."""
        sessions = lists.count[:, None].astype(np.float64)
        return cls(lists, lists.targets * sessions, np.broadcast_to(sessions, lists.ranking.shape), max_rate)

    @classmethod
    def of_log(cls, log: ClickLog, examination: Doubles, max_weight: float, held_out: Ints) -> Self:
        """The clicks or rewards of an aggregated log, by the examination of their positions.

        Args:
            log: Aggregated, or raw.
            examination: [K] or [M, K] relative to the first position.
            max_weight: Upper limit on the weight of a click; examination is at least 1 / max_weight.
            held_out: Queries whose rewards must not affect the largest rate.
        """
        sessions = log.count[:, None].astype(np.float64)
        exposure = np.maximum(examination, 1 / max_weight) * sessions
        return cls(WeightedLists.of(log), log.rewards * sessions, exposure, largest_reward(log, held_out))

    def weighted_lists(self) -> WeightedLists:
        """The lists, with the corrected click rate of each document as its target."""
        lists = self.lists
        documents = lists.candidates.offsets[lists.query, None] + np.maximum(lists.ranking, 0)
        where = lists.ranking >= 0
        clicks, exposure = (
            np.bincount(documents[where], weights=values[where], minlength=lists.candidates.n_documents).astype(
                np.float64
            )
            for values in (self.clicks, self.exposure)
        )
        return replace(lists, targets=np.where(where, self._rate(clicks, exposure)[documents], 0.0))

    def _rate(self, clicks: Doubles, exposure: Doubles) -> Doubles:
        """Clicks / exposure, from 0 to `max_rate`; 0 without exposure."""
        rate = np.divide(clicks, exposure, out=np.zeros(clicks.shape), where=exposure > 0)
        limited: Doubles = np.clip(rate, 0.0, self.max_rate)
        return limited

    def shown(self, rows: IntegerArray) -> Bools:
        """[n_documents] true = in one of these lists."""
        lists, used = self.lists, np.zeros(self.lists.candidates.n_documents, np.bool_)
        ranking = lists.ranking[rows]
        used[(lists.candidates.offsets[lists.query[rows], None] + ranking)[ranking >= 0]] = True
        return used

    def rates(self, rows: IntegerArray, normaliser: Normaliser | None) -> ClickRates:
        """Σ corrected clicks / Σ exposure of each document of a query, from 0 to `max_rate`.

        Without the limits a few clicks with a large weight would make all other documents seem alike.

        Args:
            rows: The lists to use.
            normaliser: Fitted; None = without features, [n + 1, 0], which others read.
        """
        lists, candidates = self.lists, self.lists.candidates
        query, ranking = lists.query[rows], lists.ranking[rows]
        where = ranking >= 0
        documents = (candidates.offsets[query, None] + ranking)[where]
        used = self.shown(rows)

        def total(values: Doubles) -> Doubles:
            sums = np.bincount(documents, weights=values[rows][where], minlength=len(used))
            return sums[used].astype(np.float64)

        clicks, exposure = total(self.clicks), total(self.exposure)
        rate = self._rate(clicks, exposure)
        sessions = np.bincount(query, weights=lists.count[rows], minlength=candidates.n_queries).astype(np.float64)
        if normaliser is None:
            features = np.empty((int(used.sum()) + 1, 0), np.float32)
        else:
            features = scaled_features(candidates, normaliser, used)
        by_document = np.stack([rate * exposure, exposure, rate])
        return ClickRates.by_query(
            features, candidates.query_of_document[used], by_document, sessions, lists.ranking.shape[1]
        )


def largest_reward(log: ClickLog, held_out: Ints) -> float:
    """The largest mean reward of the clicks at a position of a row; 1 if the log has no rewards, or no clicks.

    Args:
        log: Raw or aggregated.
        held_out: Queries whose rewards must not count.
    """
    if log.reward is None:
        return 1.0
    counted = (log.clicks > 0) & np.isin(log.query, held_out, invert=True)[:, None]
    return float((log.reward[counted] / log.clicks[counted]).max(initial=0.0)) or 1.0
