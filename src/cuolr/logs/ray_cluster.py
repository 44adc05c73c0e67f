"""Connection to a Ray cluster; needs the extra `cuolr[ray]`."""

import logging
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from cuolr.errors import InputError, load_extra
from cuolr.files import versions

# Ray itself would retry for minutes.
SECONDS_TO_ANSWER = 5


def connect(address: str) -> Any:
    """The module `ray`, connected to a cluster."""
    ray: Any = load_extra("ray", "ray", "Ray is not installed")
    host, _, port = address.rpartition(":")
    try:
        if port.isdigit():
            socket.create_connection((host.strip("[]"), int(port)), SECONDS_TO_ANSWER).close()
        ray.init(address, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, OverflowError, RuntimeError, ValueError) as error:
        raise InputError(
            f"ray: no Ray cluster at '{address}' ({first_line(error)}); give the address that `ray start --head` "
            "prints, or auto"
        ) from None
    return ray


@contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """The module `ray`, connected to a cluster for as long as it is needed; None without an address."""
    if address is None:
        yield None
        return
    ray = connect(address)
    try:
        yield ray
    finally:
        ray.shutdown()


def require_versions(expected: Mapping[str, str]) -> None:
    """Raise if a node has other versions of what computes than the process that sent the work."""
    there = versions()
    for name in sorted({*expected, *there}):
        wanted, installed = (of.get(name, "none") for of in (expected, there))
        if installed != wanted:
            raise InputError(
                f"expected {name} {wanted} on every node, found {installed} on one; install {wanted} there"
            )


def first_line(error: Exception) -> str:
    """An error in one line."""
    text = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {text}"
