"""Ranking of calls that wait at the same time, together: one pass over many queries costs little more than one."""

import asyncio
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

import numpy as np

from cuolr.policies.policy import ScoringPolicy, rank_by_score
from cuolr.serving.refusals import Limits, RefusedCallError
from cuolr.serving.served_models import ServedModel
from cuolr.types import Candidates, Floats, Ints

# Documents that are ranked together, at most; a request of more is ranked alone.
DOCUMENTS_AT_A_TIME = 8_192


@dataclass(frozen=True)
class RankedRequest:
    """The best documents of a request.

    Attributes:
        ranking: [≤ k] indices of documents, best first.
        scores: [n] of all documents; None if the model gives lists only.
    """

    ranking: Ints
    scores: Floats | None


@dataclass(frozen=True, eq=False)
class _Waiting:
    model: ServedModel
    features: Floats
    k: int
    result: "asyncio.Future[RankedRequest]"


Batch: TypeAlias = list[_Waiting]


class BatchRanker:
    """Ranks in one thread beside the event loop.

    A policy's scores of a document do not depend on the documents around it, so a batch gives what each request alone
    would.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._waiting: deque[_Waiting] = deque()
        self._documents = 0
        self._arrived = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, "ranking")
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to rank."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Stop; no call may wait any more."""
        if self._task is not None:
            self._task.cancel()
        self._thread.shutdown(wait=True)

    async def rank(self, model: ServedModel, features: Floats, k: int) -> RankedRequest:
        """The k best documents of one request.

        Args:
            model: The model.
            features: [n, F] of the documents.
            k: Length of the list.
        """
        if self._documents + len(features) > max(self._limits.max_waiting, len(features)):
            raise RefusedCallError(503, "overloaded", "too many documents are waiting; try again later")
        waiting = _Waiting(model, features, k, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        self._documents += len(features)
        self._arrived.set()
        try:
            return await asyncio.wait_for(waiting.result, self._limits.time_limit)
        except TimeoutError:
            message = f"not ranked within {self._limits.time_limit:g} seconds; send fewer documents or try again later"
            raise RefusedCallError(503, "timeout", message) from None

    async def _run(self) -> None:
        while True:
            await self._arrived.wait()
            batch = self._next()
            if not batch:
                self._arrived.clear()
                continue
            loop = asyncio.get_running_loop()
            for _, group in groupby(sorted(batch, key=_kind), key=_kind):
                alike = list(group)
                try:
                    ranked = await loop.run_in_executor(self._thread, _rank, alike)
                    for waiting, result in zip(alike, ranked, strict=True):
                        if not waiting.result.done():
                            waiting.result.set_result(result)
                except Exception as error:  # the batch fails, the service goes on
                    for waiting in alike:
                        if not waiting.result.done():
                            waiting.result.set_exception(error)

    def _next(self) -> Batch:
        """The requests that have waited longest; those that are given up are forgotten."""
        batch: Batch = []
        documents = 0
        while self._waiting and (not batch or documents + len(self._waiting[0].features) <= DOCUMENTS_AT_A_TIME):
            waiting = self._waiting.popleft()
            self._documents -= len(waiting.features)
            if not waiting.result.done():
                batch.append(waiting)
                documents += len(waiting.features)
        return batch


def _kind(waiting: _Waiting) -> tuple[int, int]:
    """Requests of one kind are ranked in one call."""
    return id(waiting.model), waiting.k


def _rank(batch: Sequence[_Waiting]) -> list[RankedRequest]:
    """Rank requests of one model and one length."""
    policy, k = batch[0].model.policy, batch[0].k
    offsets = np.concatenate([[0], np.cumsum([len(waiting.features) for waiting in batch])])
    features = np.concatenate([waiting.features for waiting in batch])
    candidates = Candidates(features, offsets, np.arange(len(batch)).astype(np.str_))
    scores = None
    if isinstance(policy, ScoringPolicy):
        scores = policy.score(candidates)
        ranking = rank_by_score(scores, offsets, k)
    else:
        ranking = policy.rank(candidates, k)
    return [
        RankedRequest(row[row >= 0], None if scores is None else scores[start:end])
        for row, start, end in zip(ranking, offsets[:-1], offsets[1:], strict=True)
    ]
