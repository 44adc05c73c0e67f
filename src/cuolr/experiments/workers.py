"""The interface of workers, which run the cells of an experiment on this machine or a cluster."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from cuolr.errors import InputError
from cuolr.experiments.results import CellResult
from cuolr.experiments.spec import Cell


@dataclass(frozen=True)
class Failure:
    """The error of a cell that failed."""

    error: str


Finished: TypeAlias = tuple[Cell, CellResult | Failure]


class Workers(Protocol):
    """Runs cells and returns their results in any order."""

    @property
    def free(self) -> int:
        """The number of cells that can be submitted now."""

    def share(self, value: Any) -> Any:
        """Make data or a log available to all workers; returns a handle to it."""

    def forget(self, handle: Any) -> None:
        """Free a shared value."""

    def submit(self, cell: Cell, splits: Any, clicks: Any | None) -> None:
        """Run a cell, with the handles of its data and of its log."""

    def next_finished(self) -> Iterable[Finished]:
        """Wait for at least one cell to finish."""


def describe(error: BaseException) -> str:
    """An error in one line."""
    if isinstance(error, InputError):
        return "; ".join(error.problems)
    return " ".join(f"{type(error).__name__}: {error}".split())
