"""A local server for the page: it answers this machine only."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from cuolr.browsing.browse_page import BrowsePage, embedded_json
from cuolr.errors import InputError

LOOPBACK = "127.0.0.1"
# The names that a browser on this machine may call the server by; others are of a site that points to this address.
HOSTS = ("127.0.0.1", "localhost", "[::1]")
HTML, JSON = "text/html; charset=utf-8", "application/json; charset=utf-8"
# Longer names of queries are not looked for.
MAX_TARGET = 8_192


@dataclass(frozen=True)
class PageAnswer:
    """An answer to a request, whatever serves it."""

    status: int
    content_type: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class BrowsePages:
    """What a server answers: the page at its root, and `query?id=…` beside it.

    Attributes:
        page: The page.
    """

    page: BrowsePage
    _one_at_a_time: threading.Lock = field(default_factory=threading.Lock)

    @cached_property
    def _root(self) -> bytes:
        return self.page.with_server().encode()

    def answer(self, target: str) -> PageAnswer:
        """The answer to a request.

        Args:
            target: Path below the page's root, and query string: `/` or `/query?id=shoes`.
        """
        # What begins with two slashes would be the name of a host.
        parts = urlsplit(target) if len(target) <= MAX_TARGET and not target.startswith("//") else urlsplit("/none")
        if parts.path in ("", "/"):
            return PageAnswer(200, HTML, self._root, self._headers)
        if parts.path != "/query":
            return self._refusal(404, "There is no such page.")
        ids = parse_qs(parts.query, keep_blank_values=True).get("id", [])
        if len(ids) != 1:
            return self._refusal(400, "Expected one query, as in query?id=shoes.")
        try:
            with self._one_at_a_time:
                found = self.page.view(self.page.browsed.find(ids[0]))
        except InputError as error:
            return self._refusal(404, error.problems[0])
        return PageAnswer(200, JSON, embedded_json(found.as_dict()).encode(), self._headers)

    @property
    def _headers(self) -> dict[str, str]:
        return {
            "Content-Security-Policy": self.page.content_security_policy,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cache-Control": "no-store",
        }

    def _refusal(self, status: int, text: str) -> PageAnswer:
        return PageAnswer(status, JSON, embedded_json({"error": text}).encode(), self._headers)


def browse_server(pages: BrowsePages, port: int) -> ThreadingHTTPServer:
    """A server on the loopback address, to be started by `serve_forever`.

    Args:
        pages: What it answers.
        port: 0 = any that is free.
    """

    class Handler(BaseHTTPRequestHandler):
        """Answers requests for reading, to a browser on this machine."""

        server_version, sys_version = "cuolr", ""
        timeout = 30

        def do_GET(self) -> None:
            """Answer."""
            host = self.headers.get("Host", "")
            own = host in HOSTS or host.rpartition(":")[0] in HOSTS
            answer = pages.answer(self.path) if own else PageAnswer(403, JSON, b'{"error":"Unknown host."}')
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Type", answer.content_type)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer.body)

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Requests name queries: they are not written down."""

    try:
        return ThreadingHTTPServer((LOOPBACK, port), Handler)
    except OSError as error:
        raise InputError(
            f"--port {port}: {error.strerror or error}; choose another, or 0 for any that is free"
        ) from None
