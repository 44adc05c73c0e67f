import os
import signal
from pathlib import Path

import pytest

from cuolr.experiments.local_workers import Processes
from cuolr.experiments.results_folder import ResultsFolder, read_results
from cuolr.experiments.runner import plan, run
from cuolr.experiments.spec import Cell, Experiment
from cuolr.experiments.workers import Failure, Finished
from tests.experiments.small import numbers, small, tiny_data

pytestmark = pytest.mark.thorough


def run_in_processes(folder: Path, experiment: Experiment, jobs: int) -> list[Finished]:
    told: list[Finished] = []
    planned = plan(experiment, tiny_data())
    with Processes(experiment, jobs) as workers:
        run(planned, list(planned.names), ResultsFolder(folder), workers, told.append)
    return told


def test_processes_give_the_same_numbers_as_one_cell_after_the_other(finished: Path, tmp_path: Path) -> None:
    told = run_in_processes(tmp_path, small(), jobs=2)
    assert len(told) == 18
    here, there = read_results(finished).cells, read_results(tmp_path).cells
    assert {cell: numbers(result) for cell, result in here.items()} == {
        cell: numbers(result) for cell, result in there.items()
    }


def test_an_error_in_a_process_is_told_in_a_line(tmp_path: Path) -> None:
    settings = {"learner.hidden": [10_000_000, 10_000_000]}  # sound, but no machine has memory for it
    experiment = small(
        seeds=1,
        method={"CQL": {"learner": "cql", "settings": settings}},
        grid=[{"method": ["naive", "CQL"], "click_model": ["pbm"], "sessions_per_query": [10]}],
    )
    told = {cell.method: result for cell, result in run_in_processes(tmp_path, experiment, jobs=1)}
    assert not isinstance(told["naive"], Failure)
    assert isinstance(told["CQL"], Failure)
    assert told["CQL"].error.startswith("RuntimeError: ")
    assert read_results(tmp_path).failed == {Cell("CQL", 0, 1, "ranksvm", "pbm", 10): told["CQL"].error}


def test_a_process_that_is_killed_loses_its_own_cell_alone(tmp_path: Path) -> None:
    experiment = small(seeds=1)
    planned = plan(experiment, tiny_data())
    told: list[Finished] = []
    killed: list[int] = []

    with Processes(experiment, 2) as workers:
        submit = workers.submit

        def kill_once(cell: Cell, splits: Path, clicks: Path | None) -> None:
            submit(cell, splits, clicks)
            processes = list((workers._pool._processes or {}).values())
            if len(told) >= 2 and not killed and processes:
                killed.append(processes[0].pid)  # type: ignore[arg-type]
                os.kill(killed[0], signal.SIGKILL)

        workers.submit = kill_once  # type: ignore[method-assign]
        run(planned, list(planned.names), ResultsFolder(tmp_path), workers, told.append)
    assert killed
    assert not [result for _, result in told if isinstance(result, Failure)]
    assert len(read_results(tmp_path).cells) == len(planned.names)
