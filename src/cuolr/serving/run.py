"""Runs the service until it is told to stop."""

import logging
import socket
from collections.abc import Callable

import uvicorn

from cuolr.serving.app import Pages, create_app
from cuolr.serving.guard import Access
from cuolr.serving.service import Service

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
