"""Documents that were counted one by one, as lists again: not those that were shown, but with the same counts."""

from typing import TypeAlias

import numpy as np

from cuolr.logs.clicklog import ClickLog
from cuolr.logs.last_clicks import summed
from cuolr.types import Doubles, Ints

# Lists, the level of each, and cells with their impressions, clicks and rewards, if there are any; see `ClickCounts`.
Stacked: TypeAlias = tuple[ClickLog, Ints, tuple[Ints, Doubles, Doubles, Doubles | None]]


def stack_documents(log: ClickLog, level: Ints) -> Stacked:
    """The r-th list of a query and level has at each position the document that was r-th most often shown there.

    If a query has one list, this is the list. Otherwise a document may be in several lists, also at several positions
    of one. Counts by document, position and last click are those of the log in any case. A session is counted with the
    list that has its first document, so that the number of sessions of a list may be 0.

    Args:
        log: Counts documents.
        level: [M] the level of context of each row.
    """
    assert log.page_position is not None
    assert log.last_click is not None
    document, position = log.documents[:, 0], log.page_position[:, 0].astype(np.int64)
    number, k, levels = log.count.astype(np.float64), int(position.max(initial=0)) + 1, int(level.max(initial=0)) + 1
    key = (document * levels + level) * k + position
    pairs, shown = summed(key, impressions=number)
    place, position_of_pair = np.divmod(pairs, k)
    document_of_pair, level_of_pair = np.divmod(place, levels)
    query = log.candidates.query_of_document[document_of_pair].astype(np.int64)
    rank = _ranks(shown["impressions"], (query * levels + level_of_pair) * k + position_of_pair)
    ranks = int(rank.max(initial=0)) + 1
    list_keys, list_of_pair = np.unique((query * ranks + rank) * levels + level_of_pair, return_inverse=True)
    row = list_of_pair[np.searchsorted(pairs, key)]

    cells = (row * k + position) * (k + 1) + np.maximum(log.last_click.astype(np.int64), 0)
    values = {"impressions": number, "clicks": number * log.clicks[:, 0]}
    if log.reward is not None:
        values["reward"] = number * log.reward[:, 0]
    distinct, sums = summed(cells, **values)
    at = (list_of_pair, position_of_pair)

    def table(of_cell: Doubles) -> Doubles:
        """[L, K] the sums over the last click above."""
        size = len(list_keys) * k
        return np.bincount(distinct // (k + 1), weights=of_cell, minlength=size).astype(np.float64).reshape(-1, k)

    impressions = np.maximum(table(sums["impressions"]), 1)
    ranking = np.full((len(list_keys), k), -1, log.ranking.dtype)
    ranking[at] = document_of_pair - log.candidates.offsets[query]
    lists = ClickLog(
        candidates=log.candidates,
        query=(list_keys // levels // ranks).astype(log.query.dtype),
        ranking=ranking,
        clicks=table(sums["clicks"]) / impressions,
        count=np.bincount(row, weights=log.session_count, minlength=len(list_keys)).astype(np.int64),
        reward=None if log.reward is None else table(sums["reward"]) / impressions,
        aggregated=True,
    )
    return lists, list_keys % levels, (distinct, sums["impressions"], sums["clicks"], sums.get("reward"))


def _ranks(impressions: Doubles, group: Ints) -> Ints:
    """[n] the rank of each entry in its group, from 0, by decreasing impressions; of equals, the first."""
    order = np.lexsort((-impressions, group))
    in_order = group[order]
    starts = np.flatnonzero(np.concatenate([[True], in_order[1:] != in_order[:-1]]))
    sizes = np.diff(np.append(starts, len(order)))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order)) - np.repeat(starts, sizes)
    return rank
