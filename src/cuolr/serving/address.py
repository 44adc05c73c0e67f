"""Where the service listens, and who may call it there."""

import ipaddress
import os
import socket
from collections.abc import Sequence
from pathlib import Path

from cuolr.errors import InputError, unreadable
from cuolr.serving.guard import LOOPBACK_NAMES, Access

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
    except OSError as error:
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


def _cannot_listen(host: str, port: int, error: OSError) -> InputError:
    return InputError(f"--host {host} --port {port}: cannot listen there ({error.strerror or error})")


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
