"""The work of the service behind its addresses: rank, write down, take events."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cuolr.errors import InputError
from cuolr.serving.batch_ranker import BatchRanker, RankedRequest
from cuolr.serving.calls import Event, RankCall
from cuolr.serving.journal import Journal
from cuolr.serving.metrics import ServiceMetrics
from cuolr.serving.refusals import Limits, RefusedCallError, bad_features
from cuolr.serving.served_models import ServedModel, ServedModels
from cuolr.serving.shown_lists import ListRandomisation, ShownList, as_ranked, interleave
from cuolr.types import Floats

log = logging.getLogger("cuolr.serving")
# Seconds between two checks of the folders of the models.
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


@dataclass(frozen=True)
class PreparedRequest:
    """A request that can be ranked.

    Attributes:
        call: The request.
        models: The model, or two whose lists are interleaved.
        features: [n, F] of the documents, as each model takes them.
    """

    call: RankCall
    models: tuple[ServedModel, ...]
    features: tuple[Floats, ...]


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
        requests = [self._prepare(call, f"requests[{n}]: " if several else "") for n, call in enumerate(calls)]
        made = await asyncio.gather(*map(self._show, requests))
        self.metrics.documents.inc(documents)
        return [self._answer(request, *lists) for request, lists in zip(requests, made, strict=True)]

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

    def _prepare(self, call: RankCall, place: str) -> PreparedRequest:
        """A request with its models and the features of its documents as each takes them."""
        ids = [document.id for document in call.documents]
        if len(set(ids)) < len(ids):
            (repeated, _), *_ = Counter(ids).most_common(1)
            message = f"{place}documents: expected each id once, found '{repeated}' twice"
            raise RefusedCallError(422, "bad_fields", message)
        given = [document.features for document in call.documents]
        try:
            models = [self.models.get(call.model)]
        except InputError as error:
            raise RefusedCallError(404, "unknown_model", f"{place}{error}") from None
        if self.lists.interleave_with is not None and call.model is None:
            models.append(self.models.get(self.lists.interleave_with))
        try:
            features = [model.features.numbers(ids, given) for model in models]
        except InputError as error:
            raise bad_features(error, place) from None
        return PreparedRequest(call, tuple(models), tuple(features))

    async def _show(self, request: PreparedRequest) -> tuple[ShownList, RankedRequest]:
        """The list of a request, and what its first model ranks."""
        k = min(request.call.k or self.lists.k, len(request.call.documents))
        both = zip(request.models, request.features, strict=True)
        ranked = await asyncio.gather(*(self._ranker.rank(model, features, k) for model, features in both))
        for of_model in ranked:
            _check_scores(of_model, request.call)
        if len(ranked) == 2:
            names = (request.models[0].name, request.models[1].name)
            return interleave(ranked[0], ranked[1], names, self._random), ranked[0]
        if self.lists.randomisation is None:
            return as_ranked(ranked[0]), ranked[0]
        return self.lists.randomisation.draw(ranked[0], k, self._random), ranked[0]

    def _answer(self, request: PreparedRequest, shown: ShownList, ranked: RankedRequest) -> dict[str, Any]:
        """The answer to a request, which is also written down."""
        call, model = request.call, request.models[0]
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
