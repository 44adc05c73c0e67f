"""`cuolr experiment`: all cells of a table or figure."""

import os
import shlex
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import tyro

from cuolr.cli.options import DataOptions
from cuolr.cli.terminal import progress_bar, say
from cuolr.config import Range, check_arguments
from cuolr.errors import InputError

if TYPE_CHECKING:
    from cuolr.experiments.datasets import Splits
    from cuolr.experiments.spec import Experiment
    from cuolr.experiments.workers import Finished


def experiment(
    name: tyro.conf.Positional[str],
    out: Path,
    data: str = "web10k-like",
    queries: int = 1_000,
    only: str = "",
    steps: int | None = None,
    seeds: int | None = None,
    jobs: int = os.cpu_count() or 1,
    ray: str | None = None,
    data_options: DataOptions = DataOptions(),
) -> None:
    """Run an experiment: every learner on the same simulated logs, measured on the same test queries.

    Every finished cell is written at once. Run again, it goes on where it stopped; cells that failed are tried again.
    Look at the results, finished or not, with: cuolr report OUT.

    Args:
        name: A built-in experiment (`cuolr list`), or a TOML file.
        out: Folder of the results.
        data: The folder of a data set, of which all folds are run, or generated data (web10k-like, yahoo-like, tiny).
        queries: Training queries of generated data.
        only: Some of the cells, such as click_model=pbm,learner=cql; a name given twice takes either value.
        steps: Updates of every learner, instead of what the experiment says.
        seeds: Runs where the data has no folds, instead of what the experiment says.
        jobs: Cells that run at once, each on one core.
        ray: Run the cells on all cores of the Ray cluster at this address instead; needs `pip install 'cuolr[ray]'`.
        data_options: How to read a data set.
    """
    # These need torch, which takes a second to load.
    from cuolr.experiments.spec_file import read_experiment

    chosen = read_experiment(name)
    if steps is not None:
        chosen = replace(chosen, training={**chosen.training, "steps": steps})
    if seeds is not None:
        chosen = replace(chosen, seeds=seeds)
    failures = run_cells(chosen, out, data, queries, only, jobs, data_options, ray)
    say(f"look at the results with: cuolr report {shlex.quote(str(out))}")
    tell_failures(failures, out)


def run_cells(
    experiment: "Experiment",
    out: Path,
    data: str,
    queries: int,
    only: str,
    jobs: int,
    data_options: DataOptions,
    ray: str | None = None,
    show: Callable[["Finished"], None] | None = None,
) -> int:
    """Run what is left to do of an experiment, and give the number of cells that failed.

    `show` is told of each cell, by default with a bar and a line each.
    """
    from cuolr.experiments.datasets import find_data
    from cuolr.experiments.local_workers import Processes
    from cuolr.experiments.results import ResultsFolder
    from cuolr.experiments.runner import plan, run
    from cuolr.experiments.spec import select
    from cuolr.experiments.spec_file import check
    from cuolr.experiments.workers import Failure, Workers

    check(experiment)
    check_arguments(**{"--jobs": (jobs, Range(1))})
    if data_options.fold is not None:
        raise InputError(f"--fold {data_options.fold}: all folds are run; give --only fold={data_options.fold} instead")
    ResultsFolder(out).check()

    def read(folder: Path, fold: int | None) -> "Splits":
        return replace(data_options, fold=fold).load(folder)

    source = find_data(data, queries, read, data_options.dataset)
    planned, folder = plan(experiment, source, f"cuolr {shlex.join(sys.argv[1:])}"), ResultsFolder(out)
    wanted = select(list(planned.names), experiment, only)
    there = {cell: result for cell in wanted if (result := folder.result(planned.names[cell]))}
    done = len(there)
    at_once = f"{jobs} at a time" if ray is None else f"on the Ray cluster at {ray}"
    say(f"{experiment.title}, on {source.name}: {_cells(len(wanted))}, {done} of them finished, {at_once}")
    if others := folder.strangers(planned.names):
        say(f"note: {others} results of another configuration are in {out}; they are kept, and not shown")
    failures, told = 0, done
    start = time.perf_counter()
    pool: AbstractContextManager[Workers]
    if ray is None:
        pool = Processes(experiment, jobs)
    else:
        from cuolr.experiments.ray_workers import RayWorkers

        pool = RayWorkers(experiment, ray)
    bar = progress_bar("cells", len(wanted)) if show is None else nullcontext()
    with pool as workers, bar as progress:
        if progress:
            progress(done)
        if show:
            for earlier in there.items():
                show(earlier)

        def tell(finished: "Finished") -> None:
            nonlocal failures, told
            cell, result = finished
            told += 1
            if progress:
                progress(1)
            if isinstance(result, Failure):
                failures += 1
                say(f"{told}/{len(wanted)} {cell}: failed: {result.error}")
            elif progress:
                measure = "ndcg@10" if "ndcg@10" in result.measures else experiment.measures[0]
                say(f"{told}/{len(wanted)} {cell}: {measure} {result.measures[measure]:.4f}, {result.seconds:.0f} s")
            if show:
                show(finished)

        run(planned, wanted, folder, workers, tell)
    minutes = (time.perf_counter() - start) / 60
    say(f"{_cells(len(wanted) - done - failures)} in {minutes:.1f} minutes")
    return failures


def tell_failures(failures: int, out: Path) -> None:
    """End with an error where cells failed, after all that can be shown of the others."""
    if failures:
        raise InputError(f"{_cells(failures)} failed; the errors are above, and in {out / 'failed'}")


def _cells(number: int) -> str:
    return f"{number} cell" if number == 1 else f"{number} cells"
