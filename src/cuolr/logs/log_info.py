"""Statistics of a click log."""

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from cuolr.logs.clicklog import ClickLog
from cuolr.logs.log_folder import read_click_log
from cuolr.logs.page_positions import at_page_positions, page_width, widest_page
from cuolr.logs.time_window import ALL_TIME, TimeWindow
from cuolr.progress import Stages, no_stages
from cuolr.types import Bools, Candidates


@dataclass(frozen=True)
class LogInfo:
    """Statistics of one log. A page that is a candidate of two queries counts as two documents.

    Attributes:
        sessions: Number of sessions.
        queries: Number of queries with a session.
        share_of_queries_seen: Share of the candidates' queries with a session.
        distinct_lists: Number of distinct pairs of query and ranking; None for a log that counts documents.
        clicks_per_session: Mean number of clicks.
        click_rate: By position, over the sessions that showed a document there; None if none did.
        share_without_clicks: Share of sessions without a click; None for an aggregated log.
        reward_per_session: Mean reward; None = the click is the reward.
        share_of_clicks_rewarded: Share of the clicks with a reward above 0; None for an aggregated log.
        sessions_in_random_order: Number of sessions whose list is marked as in random order; None = no marks.
        context: The number of sessions of each value of each context column.
        documents_seen: Number of documents that were shown.
        share_at_several_positions: Share of the shown documents that were shown at more than one position.
    """

    sessions: int
    queries: int
    share_of_queries_seen: float
    distinct_lists: int | None
    clicks_per_session: float
    click_rate: tuple[float | None, ...]
    share_without_clicks: float | None
    reward_per_session: float | None
    share_of_clicks_rewarded: float | None
    sessions_in_random_order: int | None
    context: dict[str, dict[str, int]]
    documents_seen: int
    share_at_several_positions: float


def describe_folder(folder: Path, window: TimeWindow = ALL_TIME, stages: Stages = no_stages) -> LogInfo:
    """The statistics of a saved log, read in chunks, for logs that are larger than memory.

    Args:
        folder: Folder of the log.
        window: The sessions to read.
        stages: Receives the rows that were read so far.
    """
    return describe_log(read_click_log(folder, window=window, ids=False, stages=stages, documents=True))


def describe_log(chunks: Iterable[ClickLog]) -> LogInfo:
    """The statistics of a log in any form, given in chunks; by position on the page."""
    chunks = iter(chunks)
    first = next(chunks)
    if first.of_documents:
        return _describe_documents([first, *chunks])
    width = widest_page(first)
    clicks, shown = np.zeros(width), np.zeros(width)
    seen = np.zeros((first.candidates.n_documents, width), np.bool_)
    lists: list[pl.Series] = []
    sessions = without_clicks = rewarded = randomised = 0
    reward = 0.0
    context: dict[str, Counter[str]] = {name: Counter() for name in first.context}
    for chunk in (at_page_positions(chunk, width) for chunk in itertools.chain([first], chunks)):
        sessions += chunk.sessions
        without_clicks += int(chunk.count[~chunk.clicks.any(axis=1)].sum())
        clicks += chunk.count @ chunk.clicks
        if chunk.reward is not None:
            reward += float(chunk.count @ chunk.reward.sum(axis=1, dtype=np.float64))
            rewarded += int(chunk.count @ (chunk.reward > 0).sum(axis=1))
        if chunk.randomised is not None:
            randomised += int(chunk.count[chunk.randomised].sum())
        _count_context(context, chunk)
        shown += chunk.count @ chunk.where
        keys = _list_keys(chunk)
        _mark_documents(seen, chunk.select(keys.arg_unique().to_numpy()))
        lists.append(keys.unique())
    if first.page_position is not None:
        last = int(np.flatnonzero(shown).max(initial=0)) + 1
        clicks, shown, seen = clicks[:last], shown[:last], seen[:, :last]
    queries = _queries_of(seen, first.candidates)
    documents, several = int(seen.any(axis=1).sum()), int((seen.sum(axis=1) > 1).sum())
    return LogInfo(
        sessions=sessions,
        queries=queries,
        share_of_queries_seen=queries / first.candidates.n_queries,
        distinct_lists=pl.concat(lists).n_unique(),
        clicks_per_session=float(clicks.sum() / sessions),
        click_rate=tuple(float(c / n) if n else None for c, n in zip(clicks, shown, strict=True)),
        share_without_clicks=None if first.aggregated else without_clicks / sessions,
        reward_per_session=None if first.reward is None else reward / sessions,
        share_of_clicks_rewarded=None
        if first.aggregated or first.reward is None
        else rewarded / max(float(clicks.sum()), 1.0),
        sessions_in_random_order=None if first.randomised is None else randomised,
        context={name: dict(sorted(values.items())) for name, values in context.items()},
        documents_seen=documents,
        share_at_several_positions=several / max(documents, 1),
    )


def _describe_documents(chunks: Sequence[ClickLog]) -> LogInfo:
    """The statistics of a log that counts documents."""
    first = chunks[0]
    width = max(map(page_width, chunks))
    clicks, shown = np.zeros(width), np.zeros(width)
    seen = np.zeros((first.candidates.n_documents, width), np.bool_)
    context: dict[str, Counter[str]] = {name: Counter() for name in first.context}
    with_clicks = rewarded = 0
    reward = 0.0
    for chunk in chunks:
        assert chunk.page_position is not None
        assert chunk.last_click is not None
        position, clicked = chunk.page_position[:, 0], chunk.clicks[:, 0] > 0
        shown += np.bincount(position, weights=chunk.count, minlength=width)
        clicks += np.bincount(position, weights=chunk.count * clicked, minlength=width)
        seen[chunk.documents[:, 0], position] = True
        # The first click of a session has no click above.
        with_clicks += int(chunk.count[clicked & (chunk.last_click <= 0)].sum())
        if chunk.reward is not None:
            reward += float(chunk.count @ chunk.reward[:, 0].astype(np.float64))
            rewarded += int(chunk.count[chunk.reward[:, 0] > 0].sum())
        _count_context(context, chunk)
    sessions = sum(chunk.sessions for chunk in chunks)
    queries, documents = _queries_of(seen, first.candidates), int(seen.any(axis=1).sum())
    has_reward = first.reward is not None
    return LogInfo(
        sessions=sessions,
        queries=queries,
        share_of_queries_seen=queries / first.candidates.n_queries,
        distinct_lists=None,
        clicks_per_session=float(clicks.sum() / sessions),
        click_rate=tuple(float(c / n) if n else None for c, n in zip(clicks, shown, strict=True)),
        share_without_clicks=1 - with_clicks / sessions,
        reward_per_session=reward / sessions if has_reward else None,
        share_of_clicks_rewarded=rewarded / max(float(clicks.sum()), 1.0) if has_reward else None,
        sessions_in_random_order=None,
        context={name: dict(sorted(values.items())) for name, values in context.items()},
        documents_seen=documents,
        share_at_several_positions=int((seen.sum(axis=1) > 1).sum()) / max(documents, 1),
    )


def _count_context(context: Mapping[str, Counter[str]], log: ClickLog) -> None:
    """Add the sessions of each value of each context column."""
    for name, values in log.context.items():
        distinct, place = np.unique(values, return_inverse=True)
        numbers = np.bincount(place, weights=log.session_count).astype(np.int64)
        context[name].update(dict(zip(map(str, distinct.tolist()), numbers.tolist(), strict=True)))


def _list_keys(log: ClickLog) -> pl.Series:
    """[M] a 64-bit hash of the row's list; the probability of a collision among ten million lists is 3e-6."""
    positions = {f"ranking.{position}": log.ranking[:, position] for position in range(log.k)}
    return pl.DataFrame({"query": log.query, **positions}).hash_rows()


def _mark_documents(seen: Bools, log: ClickLog) -> None:
    """Mark in `seen` [n_documents, K] which documents were shown at which positions."""
    row, position = np.nonzero(log.where)
    seen[log.candidates.offsets[log.query[row]] + log.ranking[row, position], position] = True


def _queries_of(seen: Bools, candidates: Candidates) -> int:
    return len(np.unique(candidates.query_of_document[seen.any(axis=1)]))
