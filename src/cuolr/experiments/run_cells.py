"""A complete run of cells, shared by experiments, tuning and the demo."""

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from cuolr.config import Range, check_arguments
from cuolr.errors import InputError
from cuolr.experiments.datasets import ExperimentData
from cuolr.experiments.local_workers import Processes
from cuolr.experiments.results_folder import ResultsFolder
from cuolr.experiments.runner import Plan, plan, run
from cuolr.experiments.selection import select
from cuolr.experiments.spec import Cell, Experiment
from cuolr.experiments.spec_file import check
from cuolr.experiments.workers import Failure, Finished, Workers
from cuolr.output_lock import writing

# Called with each cell that has a result, and whether this run produced it.
ShowCell: TypeAlias = Callable[[Finished, bool], None]


@dataclass(frozen=True)
class RunRequest:
    """Cells to run.

    Attributes:
        experiment: What to run.
        data: Returns the data set; called after the cheaper checks.
        out: Folder of the results.
        only: Condition on the cells; see `select`.
        jobs: Cells that run at once, each on one core.
        ray: Address of a Ray cluster to run on; None = this machine.
        command: The command that was typed, for the report.
    """

    experiment: Experiment
    data: Callable[[], ExperimentData]
    out: Path
    only: str = ""
    jobs: int = 1
    ray: str | None = None
    command: str = ""


@dataclass(frozen=True)
class Display:
    """Shows the progress of a run.

    Attributes:
        say: Shows a message.
        cells: Shows the results of a number of cells as they arrive.
    """

    say: Callable[[str], None]
    cells: Callable[[int], AbstractContextManager[ShowCell]]


@dataclass(frozen=True)
class RunSummary:
    """The outcome of a run.

    Attributes:
        out: Folder of the results.
        cells: Number of requested cells.
        earlier: Number of those that already had a result.
        failed: The error of each cell that failed.
        seconds: Wall-clock time.
    """

    out: Path
    cells: int
    earlier: int
    failed: Mapping[Cell, str]
    seconds: float

    @property
    def finished(self) -> int:
        """Number of cells that finished in this run."""
        return self.cells - self.earlier - len(self.failed)

    def as_dict(self) -> dict[str, Any]:
        """The summary in JSON types."""
        return {
            "results": str(self.out),
            "cells": self.cells,
            "finished_before": self.earlier,
            "finished": self.finished,
            "failed": {str(cell): error for cell, error in self.failed.items()},
            "seconds": round(self.seconds, 1),
        }

    def raise_failures(self) -> None:
        """Raise if cells failed."""
        if self.failed:
            raise InputError(
                f"{count_cells(len(self.failed))} failed; the errors are above, and in {self.out / 'failed'}"
            )


def run_cells(request: RunRequest, display: Display) -> RunSummary:
    """Run the cells that have no result yet; one process at a time."""
    with writing(request.out):
        return _run_cells(request, display)


def _run_cells(request: RunRequest, display: Display) -> RunSummary:
    experiment, folder = request.experiment, ResultsFolder(request.out)
    check(experiment)
    check_arguments(jobs=(request.jobs, Range(1)))
    folder.check()
    planned = plan(experiment, request.data(), request.command)
    wanted = select(list(planned.names), experiment, request.only)
    earlier = {cell: result for cell in wanted if (result := folder.result(planned.names[cell]))}
    _announce(request, planned, (len(wanted), len(earlier)), folder, display)
    failed: dict[Cell, str] = {}
    start = time.perf_counter()
    with _workers(request) as workers, display.cells(len(wanted)) as show:
        for known in earlier.items():
            show(known, False)

        def progress(finished: Finished) -> None:
            cell, result = finished
            if isinstance(result, Failure):
                failed[cell] = result.error
                display.say(f"{cell}: failed: {result.error}")
            show(finished, True)

        run(planned, wanted, folder, workers, progress)
    summary = RunSummary(request.out, len(wanted), len(earlier), failed, time.perf_counter() - start)
    display.say(f"{count_cells(summary.finished)} in {summary.seconds / 60:.1f} minutes")
    return summary


def _announce(
    request: RunRequest, planned: Plan, counts: tuple[int, int], folder: ResultsFolder, display: Display
) -> None:
    wanted, earlier = counts
    where = f"{request.jobs} at a time" if request.ray is None else f"on the Ray cluster at {request.ray}"
    cells = f"{count_cells(wanted)}, {earlier} already finished"
    display.say(f"{request.experiment.title}, on {planned.data.name}: {cells}, {where}")
    if stale := folder.stale(planned.names):
        display.say(f"note: {request.out} has {stale} stale results of another configuration, which are not shown")


def _workers(request: RunRequest) -> AbstractContextManager[Workers]:
    if request.ray is None:
        return Processes(request.experiment, request.jobs)
    from cuolr.experiments.ray_workers import RayWorkers  # Ray is optional

    return RayWorkers(request.experiment, request.ray)


def count_cells(number: int) -> str:
    """A number of cells in words."""
    return f"{number} cell" if number == 1 else f"{number} cells"
