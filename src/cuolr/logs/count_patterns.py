"""The one place where sessions, or counted documents, become counts: of each query, list and click pattern."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from cuolr.logs.clicklog import ClickLog
from cuolr.logs.last_clicks import summed
from cuolr.logs.packed_lists import PackedLists, packed_clicks, unpacked_clicks
from cuolr.logs.page_positions import at_page_positions
from cuolr.logs.session_files import merged_frames
from cuolr.progress import Progress, no_progress
from cuolr.types import Bools, Doubles, Ints

LISTS, CLICKS, REWARD, LABEL, COUNT = "list.", "clicks.", "reward.", "label.", "count"

# Columns [m] that distinguish sessions beside list and clicks, by name; texts or numbers.
Labels: TypeAlias = Mapping[str, npt.NDArray[Any] | pl.Series]


@dataclass(frozen=True)
class CountedPatterns:
    """A row for each query, list, labels and click pattern that occurs, sorted in this order.

    Attributes:
        query: [M].
        ranking: [M, K] the candidate at each position on the page; −1 = nothing shown.
        clicks: [M, K].
        count: [M] number of sessions.
        reward: [M, K] the sum over these sessions; None = the log has no reward.
        labels: [M] each.
    """

    query: Ints
    ranking: npt.NDArray[np.signedinteger[Any]]
    clicks: Bools
    count: Ints
    reward: Doubles | None
    labels: Mapping[str, pl.Series]

    @property
    def starts_list(self) -> Bools:
        """[M] whether a row is the first one of its query, list and labels."""
        new = np.ones(len(self.query), np.bool_)
        keys = [self.query[:, None], self.ranking, *(values.to_numpy()[:, None] for values in self.labels.values())]
        new[1:] = np.any([(key[1:] != key[:-1]).any(axis=1) for key in keys], axis=0)
        return new


def count_patterns(
    chunks: Iterable[ClickLog], labels: Callable[[ClickLog], Labels], progress: Progress = no_progress
) -> CountedPatterns:
    """Count the sessions of a log, given in chunks, raw or counted; memory grows with the rows of the result only.

    Args:
        chunks: At least one.
        labels: What distinguishes the sessions of a chunk; called once for each, in order.
        progress: Called with the number of sessions of each chunk.
    """
    chunks = iter(chunks)
    first = next(chunks)
    lists, longest = PackedLists.of(first.candidates), 1

    def counts() -> Iterator[pl.DataFrame]:
        nonlocal longest
        for chunk in chain([first], chunks):
            by_position = at_page_positions(chunk)
            k = _filled(by_position)
            longest = max(longest, k)
            yield _count(by_position, k, lists, labels(chunk))
            progress(len(chunk))

    merged = merged_frames(counts(), _merged)
    merged = merged.sort([name for part in (LISTS, LABEL, CLICKS) for name in _names(merged, part)])
    query, ranking = lists.unpack(merged.select(_names(merged, LISTS)).to_numpy(), longest, first.ranking.dtype)
    rewards = _names(merged, REWARD)
    return CountedPatterns(
        query=query,
        ranking=ranking,
        clicks=unpacked_clicks(merged.select(_names(merged, CLICKS)).to_numpy(), longest) & (ranking >= 0),
        count=merged[COUNT].to_numpy(),
        reward=merged.select(rewards).to_numpy() if rewards else None,
        labels={name.removeprefix(LABEL): merged[name] for name in _names(merged, LABEL)},
    )


def _filled(log: ClickLog) -> int:
    """The last position, from 1, at which any row shows a document; at least 1."""
    return int(np.max(np.flatnonzero((log.ranking >= 0).any(axis=0)), initial=0)) + 1


def _count(log: ClickLog, k: int, lists: PackedLists, labels: Labels) -> pl.DataFrame:
    """The counts of a chunk, of its first k positions, with lists and clicks packed."""
    packed = lists.pack(log.query, log.ranking[:, :k])
    columns: dict[str, Any] = {f"{LISTS}{word}": values for word, values in enumerate(packed)}
    columns |= {f"{LABEL}{name}": values for name, values in labels.items()}
    columns |= {f"{CLICKS}{word}": values for word, values in enumerate(packed_clicks(log.clicks[:, :k]))}
    keys = list(columns)
    columns[COUNT] = log.count
    if log.reward is not None:
        rewards = log.reward * log.count[:, None].astype(np.float64)
        columns |= {f"{REWARD}{position}": rewards[:, position] for position in range(k)}
    return pl.DataFrame(columns).group_by(keys).agg(pl.all().sum())


def _merged(counts: list[pl.DataFrame]) -> pl.DataFrame:
    """The sums; chunks may differ in the last position that is filled."""
    rows = pl.concat(counts, how="diagonal_relaxed")
    missing = {LISTS: 0, CLICKS: 0, REWARD: 0.0}
    rows = rows.with_columns(pl.col(_names(rows, part)).fill_null(value) for part, value in missing.items())
    sums = [COUNT, *_names(rows, REWARD)]
    return rows.group_by([name for name in rows.columns if name not in sums]).agg(pl.col(sums).sum())


def _names(frame: pl.DataFrame, prefix: str) -> list[str]:
    """The columns of this prefix; those of positions by their number."""
    names = [name for name in frame.columns if name.startswith(prefix)]
    return names if prefix == LABEL else sorted(names, key=lambda name: int(name.removeprefix(prefix)))


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
