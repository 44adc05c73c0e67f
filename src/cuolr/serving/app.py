"""The application: addresses, bodies and answers; and its run, until it is told to stop."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Protocol, TypeAlias, TypeVar

import pydantic_core
import uvicorn
from fastapi import FastAPI, Request
from fastapi.openapi.utils import get_openapi
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, RedirectResponse, Response

import cuolr
from cuolr.serving import calls
from cuolr.serving.guard import ONLY_THIS_MACHINE, Access, Guard
from cuolr.serving.refusals import OF_STATUS, RefusedCallError, bad_fields
from cuolr.serving.service import Service

M = TypeVar("M", bound=BaseModel)
PATHS = frozenset({"/rank", "/events", "/health", "/model", "/metrics", "/openapi.json"})
REFUSED: dict[int | str, dict[str, Any]] = {"4XX": {"model": calls.ErrorAnswer}, "5XX": {"model": calls.ErrorAnswer}}
# The bodies of calls by path: one, or several.
BODIES: dict[str, tuple[type[BaseModel], type[BaseModel]]] = {
    "/rank": (calls.RankCall, calls.RankCalls),
    "/events": (calls.Event, calls.Events),
}


class Answer(Protocol):
    """The answer of a page."""

    @property
    def status(self) -> int:
        """HTTP status."""

    @property
    def content_type(self) -> str:
        """Type of the body."""

    @property
    def body(self) -> bytes:
        """The page."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Further headers, such as its content security policy."""


# Gives the answer to a target below the root of pages, such as `/` or `/query?id=shoes`.
Pages: TypeAlias = Callable[[str], Answer]


def create_app(service: Service, access: Access = ONLY_THIS_MACHINE, pages: Pages | None = None) -> FastAPI:
    """The application of a service.

    Args:
        service: What its addresses do.
        access: Who may call.
        pages: What is shown at /browse/; None = nothing.
    """

    @asynccontextmanager
    async def running(_: FastAPI) -> AsyncIterator[None]:
        await service.start()
        yield
        await service.stop()

    # The pages that FastAPI would show of its description load scripts from other sites.
    app = FastAPI(title="cuolr", version=cuolr.__version__, lifespan=running, docs_url=None, redoc_url=None)
    app.add_middleware(Guard, access=access, metrics=service.metrics, known=PATHS)
    app.add_exception_handler(HTTPException, _refuse)
    app.openapi = lambda: _describe(app)  # type: ignore[method-assign]
    _add_ranking(app, service)
    _add_state(app, service)
    if pages is not None:
        _add_pages(app, pages)
    return app


def _add_ranking(app: FastAPI, service: Service) -> None:
    @app.post("/rank", response_model=calls.RankAnswer | calls.RankAnswers, responses=REFUSED)
    async def rank(request: Request) -> Response:
        """Rank the documents of one query, or of several."""
        body = await _read(request, service)
        if "requests" in body:
            results = await service.rank(_parse(calls.RankCalls, body).requests)
            return JSONResponse({"results": results})
        (result,) = await service.rank([_parse(calls.RankCall, body)])
        return JSONResponse(result)

    @app.post("/events", response_model=calls.EventsAnswer, responses=REFUSED)
    async def events(request: Request) -> Response:
        """Take clicks and rewards for documents that were shown."""
        body = await _read(request, service)
        found = _parse(calls.Events, body).events if "events" in body else [_parse(calls.Event, body)]
        return JSONResponse({"accepted": service.take(found)})


def _add_state(app: FastAPI, service: Service) -> None:
    @app.get("/health", response_model=calls.Health)
    async def health() -> Response:
        """Whether the service ranks."""
        return JSONResponse({"status": "ok"})

    @app.get("/model", response_model=calls.ModelsAnswer, responses=REFUSED)
    async def model() -> Response:
        """The models that are served, and the features that they take."""
        return JSONResponse({"models": [served.describe() for served in service.models.models.values()]})

    @app.get("/metrics", responses=REFUSED)
    async def metrics() -> Response:
        """Counters, as Prometheus reads them."""
        return Response(service.metrics.text(), media_type=CONTENT_TYPE_LATEST)


def _add_pages(app: FastAPI, pages: Pages) -> None:
    @app.get("/browse", include_in_schema=False)
    async def root() -> Response:
        return RedirectResponse("/browse/")

    @app.get("/browse/{rest:path}", include_in_schema=False)
    async def page(request: Request, rest: str) -> Response:
        target = f"/{rest}?{request.url.query}" if request.url.query else f"/{rest}"
        found = await asyncio.to_thread(pages, target)
        return Response(found.body, found.status, dict(found.headers), found.content_type)


async def _read(request: Request, service: Service) -> dict[str, Any]:
    """The JSON object of a body, within the limits."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        # A page of another site cannot send this type without being asked first.
        raise RefusedCallError(415, "bad_type", "expected the header 'Content-Type: application/json'")
    try:
        content = await asyncio.wait_for(_content(request, service.limits.max_body), service.limits.time_limit)
    except TimeoutError:
        raise RefusedCallError(408, "timeout", "the body did not arrive in time") from None
    try:
        body = pydantic_core.from_json(content, allow_inf_nan=False)
    except ValueError as error:
        raise RefusedCallError(400, "bad_json", f"not valid JSON: {error}") from None
    if not isinstance(body, dict):
        raise RefusedCallError(422, "bad_fields", f"body: expected an object, found a {type(body).__name__}")
    return body


async def _content(request: Request, limit: int) -> bytes:
    content = bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > limit:
            raise RefusedCallError(413, "too_large", f"body: expected at most {limit:,} bytes, found more")
    return bytes(content)


def _parse(model: type[M], body: dict[str, Any]) -> M:
    try:
        return model.model_validate(body)
    except ValidationError as error:
        raise bad_fields(error) from None


async def _refuse(_: Request, error: Exception) -> Response:
    """The framework's own refusals in the form of ours."""
    assert isinstance(error, HTTPException)
    kind = OF_STATUS.get(error.status_code, "refused")
    return RefusedCallError(error.status_code, kind, str(error.detail)).answer()


def _describe(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI description, with the bodies that the addresses read themselves."""
    if app.openapi_schema is None:
        described = get_openapi(title=app.title, version=app.version, routes=app.routes)
        schemas = described["components"]["schemas"]
        for path, models in BODIES.items():
            for model in models:
                schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
                schemas |= schema.pop("$defs", {}) | {model.__name__: schema}
            either = [{"$ref": f"#/components/schemas/{model.__name__}"} for model in models]
            content = {"application/json": {"schema": {"anyOf": either}}}
            described["paths"][path]["post"]["requestBody"] = {"required": True, "content": content}
        app.openapi_schema = described
    return app.openapi_schema


# Seconds that calls have to finish once the service is told to stop.
GRACE_SECONDS = 10
# Longer than the minute for which proxies keep idle connections, so that none is closed while a call is on its way.
KEEP_ALIVE_SECONDS = 75


def run_service(
    service: Service,
    access: Access,
    listening: socket.socket,
    say: Callable[[str], None],
    pages: Pages | None = None,
) -> None:
    """Answer calls until Ctrl-C or SIGTERM; calls that have begun are answered first.

    Args:
        service: The service.
        access: Who may call.
        listening: The socket.
        say: Receives messages for the operator.
        pages: What is shown at /browse/; None = nothing.
    """
    _messages_to(say)
    config = uvicorn.Config(
        create_app(service, access, pages),
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
        lifespan="on",
    )
    uvicorn.Server(config).run(sockets=[listening])


def _messages_to(say: Callable[[str], None]) -> None:
    """Send the messages of the service, and the errors of the server, to the operator."""

    class ToOperator(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            say(self.format(record))

    for name, level in (("cuolr.serving", logging.INFO), ("uvicorn", logging.ERROR)):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [ToOperator()], False
        logger.setLevel(level)
