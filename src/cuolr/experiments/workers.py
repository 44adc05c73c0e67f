"""What runs the cells of an experiment: processes on this machine, or a cluster."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from cuolr.errors import InputError
from cuolr.experiments.results import CellResult
from cuolr.experiments.spec import Cell


@dataclass(frozen=True)
class Failure:
    """Why there is no result."""

    error: str


Finished: TypeAlias = tuple[Cell, CellResult | Failure]


class Workers(Protocol):
    """Take cells, and give results in whatever order they come."""

    @property
    def free(self) -> int:
        """How many cells can be submitted now."""

    def share(self, thing: Any) -> Any:
        """Put data or a log where all workers can have it; gives a handle to it."""

    def forget(self, handle: Any) -> None:
        """It is not needed any more."""

    def submit(self, cell: Cell, splits: Any, clicks: Any | None) -> None:
        """Run a cell, with the handles of its data and of its log."""

    def next_finished(self) -> Iterable[Finished]:
        """Wait for at least one cell to finish."""


def describe(error: BaseException) -> str:
    """An error in a line, for people."""
    if isinstance(error, InputError):
        return "; ".join(error.problems)
    return " ".join(f"{type(error).__name__}: {error}".split())
