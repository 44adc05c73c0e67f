"""Where the service listens, who may call it there, and what every call meets first: checks, headers, a time."""

import hmac
import ipaddress
import logging
import os
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cuolr.errors import InputError, unreadable
from cuolr.serving.metrics import ServiceMetrics
from cuolr.serving.refusals import RefusedCallError

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
# A load balancer asks for it by address and without a token; it says nothing.
OPEN = "/health"
SAFETY_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
log = logging.getLogger("cuolr.serving")


@dataclass(frozen=True)
class Access:
    """Who may call.

    Attributes:
        hosts: Names in the Host header that are answered, without a port: a page of another site that resolves to
            this address is not.
        token: The bearer token that calls must have; None = none.
    """

    hosts: tuple[str, ...] = LOOPBACK_NAMES
    token: str | None = None

    def check(self, headers: Headers) -> None:
        """Raise if a call is not allowed."""
        host = headers.get("host", "").lower()
        name = host[: host.rindex("]") + 1] if host.startswith("[") and "]" in host else host.partition(":")[0]
        if name not in self.hosts:
            raise RefusedCallError(400, "bad_host", "this name is not served here; --allowed-host adds one")
        if self.token is None:
            return
        scheme, _, given = headers.get("authorization", "").partition(" ")
        # Compared as bytes, in a time that does not depend on where they differ.
        right = hmac.compare_digest(given.strip().encode(), self.token.encode())
        if scheme.lower() != "bearer" or not right:
            raise RefusedCallError(401, "bad_token", "expected the header 'Authorization: Bearer TOKEN'")


ONLY_THIS_MACHINE = Access()


class Guard:
    """Stands around the application; `known` are the paths that are counted by name."""

    def __init__(self, app: ASGIApp, access: Access, metrics: ServiceMetrics, known: frozenset[str]) -> None:
        self._app, self._access, self._metrics, self._known = app, access, metrics, known

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a call, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.perf_counter(), 0

        async def send_safely(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in SAFETY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            if scope["path"] != OPEN:
                self._access.check(Headers(scope=scope))
            await self._app(scope, receive, send_safely)
        except RefusedCallError as refused:
            await refused.answer()(scope, receive, send_safely)
        except Exception:
            log.exception("a call failed")
            if not status:
                await internal_error().answer()(scope, receive, send_safely)
        finally:
            path = scope["path"] if scope["path"] in self._known else "other"
            self._metrics.calls.labels(path, str(status)).inc()
            self._metrics.seconds.labels(path).observe(time.perf_counter() - started)


def internal_error() -> RefusedCallError:
    """What the caller is told of a defect of the service."""
    return RefusedCallError(500, "internal", "the service failed; its own log says why")


TOKEN_VARIABLE = "CUOLR_TOKEN"
MIN_TOKEN = 16
# Connections that wait until the service takes them.
BACKLOG = 2_048


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def access_to(host: str, token_file: Path | None, allowed_hosts: Sequence[str] = ()) -> Access:
    """Who may call: without a token only this machine.

    Args:
        host: Address to listen at.
        token_file: File with the token; None = that of the environment, if there is one.
        allowed_hosts: Further names by which the service is called.
    """
    token = _token(token_file)
    if token is None and not is_loopback(host):
        raise InputError(
            f"--host {host}: an address that other machines reach needs a bearer token; give one with --token-file or "
            f"{TOKEN_VARIABLE}"
        )
    own = () if host in ("0.0.0.0", "::", "") else (f"[{host}]" if ":" in host else host,)
    return Access(tuple(name.lower() for name in (*LOOPBACK_NAMES, *own, *allowed_hosts)), token)


def listen(host: str, port: int) -> socket.socket:
    """A socket at the address; port 0 = any that is free."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:  # such as an unknown name, or one that no address can have
        raise _cannot_listen(host, port, error) from None
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        raise _cannot_listen(host, port, error) from None
    return listening


def _cannot_listen(host: str, port: int, error: OSError | UnicodeError) -> InputError:
    reason = error.strerror if isinstance(error, OSError) else "not a name or an address"
    return InputError(f"--host {host} --port {port}: cannot listen there ({reason or error})")


def _token(file: Path | None) -> str | None:
    if file is not None:
        try:
            token, place = file.read_text(encoding="utf-8").strip(), str(file)
        except (OSError, UnicodeDecodeError) as error:
            raise unreadable(file, error if isinstance(error, OSError) else OSError("not text")) from None
    elif TOKEN_VARIABLE in os.environ:
        token, place = os.environ[TOKEN_VARIABLE].strip(), TOKEN_VARIABLE
    else:
        return None
    if len(token) < MIN_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise InputError(f"{place}: expected a token of {MIN_TOKEN} or more printable characters without spaces")
    return token
