"""Options and progress displays shared by the commands that run the cells of an experiment."""

import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from cuolr.cli.options import DataOptions
from cuolr.cli.terminal import live_table, progress_bar, say
from cuolr.errors import InputError

if TYPE_CHECKING:
    from cuolr.experiments.datasets import ExperimentData, Splits
    from cuolr.experiments.run_cells import Display, RunRequest, ShowCell
    from cuolr.experiments.spec import Experiment
    from cuolr.experiments.workers import Finished

Address = Annotated[str, tyro.conf.arg(metavar="ADDRESS")]


@dataclass(frozen=True)
class CellOptions:
    """The cells to run.

    Attributes:
        out: Folder of the results.
        data: Folder of a data set, all folds of which are run, or generated data: web10k-like, yahoo-like or tiny.
        queries: Number of training queries of generated data.
        only: Condition on the cells to run, such as click_model=pbm,learner=cql. A name given twice accepts either
            value.
        jobs: Number of cells that run at once, each on one core.
        ray: Address of a Ray cluster to run the cells on. Needs `pip install 'cuolr[ray]'`.
    """

    out: Path
    data: str = "web10k-like"
    queries: int = 1_000
    only: str = ""
    jobs: int = os.cpu_count() or 1
    ray: Address | None = None

    def request(self, experiment: "Experiment", data_options: DataOptions) -> "RunRequest":
        """A run of these cells of an experiment."""
        from cuolr.experiments.run_cells import RunRequest

        if data_options.fold is not None:
            raise InputError(f"--fold {data_options.fold}: not supported here; use --only fold={data_options.fold}")
        return RunRequest(
            experiment,
            lambda: self._data(data_options),
            self.out,
            self.only,
            self.jobs,
            self.ray,
            f"cuolr {shlex.join(sys.argv[1:])}",
        )

    def _data(self, data_options: DataOptions) -> "ExperimentData":
        from cuolr.experiments.datasets import find_data

        def read(folder: Path, fold: int | None) -> "Splits":
            return replace(data_options, fold=fold).load(folder)

        return find_data(self.data, self.queries, read, data_options.dataset)


def lines_display() -> "Display":
    """A progress bar, and a line for each cell that finishes."""
    from cuolr.experiments.run_cells import Display
    from cuolr.experiments.workers import Failure

    @contextmanager
    def cells(total: int) -> Iterator["ShowCell"]:
        done = 0
        with progress_bar("cells", total) as advance:

            def show(finished: "Finished", is_new: bool) -> None:
                nonlocal done
                cell, result = finished
                done += 1
                advance(1)
                if is_new and not isinstance(result, Failure):
                    measure = "ndcg@10" if "ndcg@10" in result.measures else next(iter(result.measures))
                    say(f"{done}/{total} {cell}: {measure} {result.measures[measure]:.4f}, {result.seconds:.0f} s")

            yield show

    return Display(say, cells)


def table_display(experiment: "Experiment", measure: str) -> "Display":
    """A table of methods by click models that fills up."""
    from cuolr.experiments.run_cells import Display
    from cuolr.experiments.workers import Failure

    (grid,) = experiment.grid

    @contextmanager
    def cells(total: int) -> Iterator["ShowCell"]:
        with live_table(f"{measure} so far", ["", *grid.click_model], grid.method) as put:

            def show(finished: "Finished", is_new: bool) -> None:
                cell, result = finished
                columns: Sequence[str] = [cell.click_model] if cell.click_model else grid.click_model
                put(
                    cell.method, columns, "failed" if isinstance(result, Failure) else f"{result.measures[measure]:.4f}"
                )

            yield show

    return Display(say, cells)
