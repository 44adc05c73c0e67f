"""`cuolr serve`: rank over HTTP, and keep a log of what was shown and clicked."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from cuolr.cli.browse_options import PAGE_QUERIES, make_page
from cuolr.cli.terminal import say, stage_bars
from cuolr.config import Range, check_arguments
from cuolr.errors import InputError, problems_in
from cuolr.logs.log_folder import load_click_log

if TYPE_CHECKING:
    from cuolr.serving.app import Pages
    from cuolr.serving.loss_limit import LossLimit
    from cuolr.serving.served_models import ServedModels
    from cuolr.serving.service import ListSettings

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
        interleave: Folder of another model: lists are interleaved from both (team draft), to be analysed with
            `cuolr interleaving`.
        randomise: `swap-neighbours:SHARE` swaps two neighbours in this share of the lists, `plackett-luce:TEMPERATURE`
            draws each list from a softmax of the scores. The log has the propensities.
        max_loss: Largest share of the clicks that --randomise may cost.
        safety_log: Click log with the features of the model, to estimate what --randomise costs. By default only what
            holds in the worst case counts.
        browse: Click log to show the first model beside, at /browse/, as `cuolr browse` does.
        seed: Seed of --randomise and --interleave. By default another for each start.
    """

    log: Path | None = None
    interleave: Annotated[Path | None, tyro.conf.arg(metavar="MODEL_B")] = None
    randomise: Annotated[str | None, tyro.conf.arg(metavar="NAME:AMOUNT")] = None
    max_loss: Annotated[str, tyro.conf.arg(metavar="SHARE")] = "5%"
    safety_log: Annotated[Path | None, tyro.conf.arg(metavar="LOG")] = None
    browse: Annotated[Path | None, tyro.conf.arg(metavar="LOG")] = None
    seed: int | None = None

    def check(self) -> None:
        """Raise, before any work, if options do not go together."""
        if self.interleave is not None and self.randomise is not None:
            raise InputError("--interleave: not possible with --randomise; a test shows the lists of both models")
        if self.interleave is not None and self.log is None:
            raise InputError("--interleave: needs --log FOLDER, for `cuolr interleaving`")
        if self.safety_log is not None and self.randomise is None:
            raise InputError("--safety-log: only possible with --randomise")

    def loss_limit(self, k: int) -> "LossLimit | None":
        """What limits the randomisation; None = there is none."""
        from cuolr.serving.loss_limit import LossLimit
        from cuolr.serving.shown_lists import parse_randomisation, parse_share

        if self.randomise is None:
            return None
        with problems_in("--randomise"):
            randomisation = parse_randomisation(self.randomise)
        with problems_in("--max-loss"):
            max_loss = parse_share(self.max_loss)
        if self.safety_log is None:
            return LossLimit(randomisation, k, max_loss)
        from cuolr.off_policy.users_of_log import UsersOfLog

        with stage_bars() as stages, problems_in("--safety-log"):
            users = UsersOfLog.fit(load_click_log(self.safety_log), stages=stages)
        return LossLimit(randomisation, k, max_loss, users)

    def settings(self, k: int, limit: "LossLimit | None") -> "ListSettings":
        """How lists are made."""
        from cuolr.serving.service import ListSettings

        other = None if self.interleave is None else self.interleave.resolve().name
        return ListSettings(k, None if limit is None else limit.randomisation, other, self.seed)


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
    lists.check()
    _require_packages()
    from cuolr.serving.app import run_service
    from cuolr.serving.guard import access_to, listen
    from cuolr.serving.journal import Journal
    from cuolr.serving.refusals import Limits
    from cuolr.serving.served_models import ServedModels
    from cuolr.serving.service import Service

    access = access_to(address.host, address.token_file, address.allowed_host)
    within = Limits(limits.max_body, limits.max_documents, time_limit=limits.time_limit)
    limit = lists.loss_limit(k)
    served = ServedModels.load([*models, *([] if lists.interleave is None else [lists.interleave])])
    if limit is not None:
        _keep_within(limit, served)
    pages = None if lists.browse is None else _pages_of(models[0], lists.browse)
    listening = listen(address.host, address.port)
    journal = None if lists.log is None else Journal(lists.log)
    service = Service(served, within, lists.settings(k, limit), journal)
    host, port = listening.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    say(f"serving {', '.join(served.models)} at http://{shown}:{port}; stop with Ctrl-C")
    run_service(service, access, listening, say, pages)


def _pages_of(model: Path, log: Path) -> "Pages":
    """The page of a model beside a log."""
    from cuolr.browsing.browse_server import BrowsePages

    with stage_bars() as stages:
        return BrowsePages(make_page(model, log, PAGE_QUERIES, stages)).answer


def _keep_within(limit: "LossLimit", served: "ServedModels") -> None:
    """Raise if the randomisation costs too much, now or with a model that is loaded later."""
    for model in served.models.values():
        say(limit.check(model))
    served.accept = limit.check


def _require_packages() -> None:
    """Raise if the extra is not installed."""
    from importlib.util import find_spec

    if any(find_spec(name) is None for name in NEEDED):
        raise InputError("the service needs FastAPI and uvicorn; install them with: pip install 'cuolr[serve]'")
