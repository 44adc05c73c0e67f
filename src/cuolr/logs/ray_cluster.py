"""Connection to a Ray cluster; needs the extra `cuolr[ray]`."""

import logging
import socket
from typing import Any

from cuolr.errors import InputError, load_extra

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


def first_line(error: Exception) -> str:
    """An error in one line."""
    text = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {text}"
