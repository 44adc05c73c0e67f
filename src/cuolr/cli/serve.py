"""`cuolr serve`: rank over HTTP, and keep a log of what was shown and clicked."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from cuolr.cli.terminal import say
from cuolr.config import Range, check_arguments
from cuolr.errors import InputError

if TYPE_CHECKING:
    pass

# The packages of the extra `serve`.
NEEDED = ("fastapi", "uvicorn", "prometheus_client", "pydantic")


@dataclass(frozen=True)
class AddressFlags:
    """Where the service listens, and who may call it.

    Attributes:
        host: Address to listen at. Any other than the loopback address needs a token.
        port: Port to listen at; 0 = any that is free.
        token_file: File with the token that calls must have, as `Authorization: Bearer TOKEN`. By default that of the
            environment variable CUOLR_TOKEN, if there is one.
        allowed_host: Further name by which the service is called, as in the header Host.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    token_file: Path | None = None
    allowed_host: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME"), tyro.conf.UseAppendAction] = ()


@dataclass(frozen=True)
class LimitFlags:
    """Limits of a call.

    Attributes:
        max_body: Bytes of a body.
        max_documents: Documents of a call.
        time_limit: Seconds to rank a call.
    """

    max_body: int = 16 * 1024 * 1024
    max_documents: int = 10_000
    time_limit: float = 5.0


@dataclass(frozen=True)
class ServedLogFlags:
    """The log and the lists.

    Attributes:
        log: Folder to write down what was shown and clicked, for `cuolr import-log --format cuolr-serve`.
    """

    log: Path | None = None


def serve(
    models: tyro.conf.Positional[tuple[Path, ...]],
    k: int = 10,
    lists: ServedLogFlags = ServedLogFlags(),
    address: AddressFlags = AddressFlags(),
    limits: LimitFlags = LimitFlags(),
) -> None:
    """Rank documents over HTTP with one or more models.

    POST /rank ranks the documents of a query; POST /events takes clicks for the log; GET /health, /model, /metrics
    and /openapi.json describe the service. A model is replaced as soon as its folder holds a new one. Ctrl-C and
    SIGTERM stop the service once calls that have begun are answered.

    Args:
        models: Folders of saved models. A request names one by the name of its folder; the first is the default.
        k: Length of the lists, unless a request says another.
        lists: The log and the lists.
        address: Where the service listens, and who may call it.
        limits: Limits of a call.
    """
    check_arguments(**{"--k": (k, Range(1)), "--port": (address.port, Range(0, 65535))})
    _require_packages()
    from cuolr.serving.address import access_to, listen
    from cuolr.serving.journal import Journal
    from cuolr.serving.limits import Limits
    from cuolr.serving.run import run_service
    from cuolr.serving.served_models import ServedModels
    from cuolr.serving.service import ListSettings, Service

    access = access_to(address.host, address.token_file, address.allowed_host)
    within = Limits(limits.max_body, limits.max_documents, time_limit=limits.time_limit)
    served = ServedModels.load(models)
    list_settings = ListSettings(k)
    listening = listen(address.host, address.port)
    journal = None if lists.log is None else Journal(lists.log)
    service = Service(served, within, list_settings, journal)
    host, port = listening.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    say(f"serving {', '.join(served.models)} at http://{shown}:{port}; stop with Ctrl-C")
    run_service(service, access, listening, say)


def _require_packages() -> None:
    """Raise if the extra is not installed."""
    from importlib.util import find_spec

    if any(find_spec(name) is None for name in NEEDED):
        raise InputError("the service needs FastAPI and uvicorn; install them with: pip install 'cuolr[serve]'")
