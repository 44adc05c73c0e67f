"""The work of the service behind its addresses: rank, write down, take events."""

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cuolr.errors import InputError
from cuolr.serving.batch_ranker import BatchRanker, RankedRequest
from cuolr.serving.calls import Event, RankCall
from cuolr.serving.interleaved_lists import interleave
from cuolr.serving.journal import Journal
from cuolr.serving.limits import Limits
from cuolr.serving.metrics import ServiceMetrics
from cuolr.serving.refusals import RefusedCallError, bad_features
from cuolr.serving.served_models import ServedModel, ServedModels
from cuolr.serving.shown_lists import ListRandomisation, ShownList, as_ranked
from cuolr.types import Floats

log = logging.getLogger("cuolr.serving")
# Seconds between two looks at the folders of the models.
WATCH_SECONDS = 1.0


@dataclass(frozen=True)
class ListSettings:
    """How lists are made.

    Attributes:
        k: Length of lists, unless a request says another.
        randomisation: Changes lists at random; None = none.
        interleave_with: Name of the model that the default model is interleaved with; None = none.
        seed: Of the random numbers; None = another for each start.
    """

    k: int = 10
    randomisation: ListRandomisation | None = None
    interleave_with: str | None = None
    seed: int | None = None


@dataclass
class Service:
    """What the addresses of the application do.

    Attributes:
        models: The models.
        limits: What a call may ask for.
        lists: How lists are made.
        journal: Where lists and events are written down; None = nowhere.
        metrics: What is counted.
    """

    models: ServedModels
    limits: Limits = field(default_factory=Limits)
    lists: ListSettings = field(default_factory=ListSettings)
    journal: Journal | None = None
    metrics: ServiceMetrics = field(default_factory=ServiceMetrics)

    def __post_init__(self) -> None:
        self._ranker = BatchRanker(self.limits)
        self._random = np.random.default_rng(self.lists.seed)
        self._watch: asyncio.Task[None] | None = None
        for model in self.models.models.values():
            self.metrics.serves(model.name, model.version)

    async def start(self) -> None:
        """Begin to rank, to write, and to watch the models' folders."""
        await self._ranker.start()
        if self.journal is not None:
            self.journal.start(self.metrics)
        self._watch = asyncio.create_task(self._watch_folders())

    async def stop(self) -> None:
        """Write down what is left, and stop."""
        if self._watch is not None:
            self._watch.cancel()
        await self._ranker.stop()
        if self.journal is not None:
            await asyncio.to_thread(self.journal.stop)

    async def rank(self, calls: Sequence[RankCall]) -> list[dict[str, Any]]:
        """The lists of some requests; if one of them is refused, all are."""
        if len(calls) > self.limits.max_requests:
            raise _too_many("requests", len(calls), self.limits.max_requests)
        if (documents := sum(len(call.documents) for call in calls)) > self.limits.max_documents:
            raise _too_many("documents", documents, self.limits.max_documents)
        several = len(calls) > 1
        work = [self._prepare(call, f"requests[{n}]: " if several else "") for n, call in enumerate(calls)]
        shown = await asyncio.gather(*(self._show(model, features, call) for call, model, features in work))
        self.metrics.documents.inc(documents)
        return [self._answer(call, model, made) for (call, model, _), made in zip(work, shown, strict=True)]

    def take(self, events: Sequence[Event]) -> int:
        """Write down events, of requests that were given out; returns their number."""
        if self.journal is None:
            raise RefusedCallError(409, "no_log", "this service keeps no log; start it with --log FOLDER")
        if len(events) > self.limits.max_events:
            raise _too_many("events", len(events), self.limits.max_events)
        for event in events:
            if not self.journal.ids.is_ours(event.request_id):
                message = "request_id: expected one that this service gave out, found another"
                raise RefusedCallError(404, "unknown_request", message)
        for event in events:
            self.journal.write({"kind": "event", "time": time.time(), **event.model_dump()})
        self.metrics.events.inc(len(events))
        return len(events)

    def _prepare(self, call: RankCall, place: str) -> tuple[RankCall, ServedModel, Floats]:
        """A request with its model and the features of its documents."""
        try:
            model = self.models.get(call.model)
        except InputError as error:
            raise RefusedCallError(404, "unknown_model", f"{place}{error}") from None
        ids = [document.id for document in call.documents]
        if len(set(ids)) < len(ids):
            repeated = next(name for name in ids if ids.count(name) > 1)
            raise RefusedCallError(
                422, "bad_fields", f"{place}documents: expected each id once, found '{repeated}' twice"
            )
        try:
            return call, model, model.features.numbers(ids, [document.features for document in call.documents])
        except InputError as error:
            raise bad_features(error, place) from None

    async def _show(self, model: ServedModel, features: Floats, call: RankCall) -> tuple[ShownList, RankedRequest]:
        """The list of a request, and what the model itself ranks."""
        k = min(call.k or self.lists.k, len(features))
        other = self.lists.interleave_with
        if other is not None and call.model is None:
            second = self.models.get(other)
            of_second = second.features.numbers(
                [document.id for document in call.documents], [document.features for document in call.documents]
            )
            a, b = await asyncio.gather(self._ranker.rank(model, features, k), self._ranker.rank(second, of_second, k))
            for ranked in (a, b):
                _check_scores(ranked, call)
            return interleave(a, b, (model.name, second.name), self._random), a
        ranked = await self._ranker.rank(model, features, k)
        _check_scores(ranked, call)
        if self.lists.randomisation is None or (self.lists.randomisation.needs_scores and not model.scores):
            return as_ranked(ranked), ranked
        return self.lists.randomisation.draw(ranked, k, self._random), ranked

    def _answer(self, call: RankCall, model: ServedModel, made: tuple[ShownList, RankedRequest]) -> dict[str, Any]:
        """The answer to a request, which is also written down."""
        shown, ranked = made
        order = shown.order.tolist()
        ids = [call.documents[index].id for index in order]
        scores = [None] * len(order) if ranked.scores is None else ranked.scores[shown.order].tolist()
        propensity = shown.propensity.tolist()
        request_id = None
        if self.journal is not None:
            request_id = self.journal.ids.new()
            self.journal.write(
                {
                    "kind": "list",
                    "time": time.time(),
                    "request_id": request_id,
                    "query": call.query,
                    "user": call.user,
                    "model": model.name,
                    "version": model.version,
                    "documents": ids,
                    "scores": scores,
                    "propensity": propensity,
                    "team": list(shown.team) or None,
                }
            )
        documents = [
            {"id": ids[place], "position": place + 1, "score": scores[place], "propensity": propensity[place]}
            for place in range(len(ids))
        ]
        return {
            "request_id": request_id,
            "query": call.query,
            "model": model.name,
            "version": model.version,
            "documents": documents,
        }

    async def _watch_folders(self) -> None:
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            for changed in await asyncio.to_thread(self.models.reload):
                self.metrics.reloads.labels(changed.name, "failed" if changed.problem else "done").inc()
                self.metrics.serves(changed.name, changed.after, changed.before)
                if changed.problem:
                    log.warning("model '%s' stays at %s: %s", changed.name, changed.before, changed.problem)
                else:
                    log.info("model '%s' is now %s, it was %s", changed.name, changed.after, changed.before)


def _check_scores(ranked: RankedRequest, call: RankCall) -> None:
    """Raise if a document has no score: its place would be arbitrary."""
    if ranked.scores is not None and not (known := np.isfinite(ranked.scores)).all():
        name = call.documents[int(known.argmin())].id
        raise RefusedCallError(422, "no_score", f"document '{name}': the model gives no score; is a feature missing?")


def _too_many(what: str, found: int, limit: int) -> RefusedCallError:
    return RefusedCallError(413, "too_many", f"{what}: expected at most {limit:,}, found {found:,}")
