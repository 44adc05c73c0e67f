"""Methods on a real log: each is trained once per seed; what is finished is kept and not run again."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cuolr.errors import InputError
from cuolr.experiments.real_cells import FORMAT, FORMATS, RealResult, click_rates, measure_method
from cuolr.experiments.real_data import RealData
from cuolr.experiments.real_summary import NAIVE, RealSummary, summarise
from cuolr.experiments.results import read_hashed, write_hashed
from cuolr.experiments.selection import select
from cuolr.experiments.spec import Cell, Experiment, Method
from cuolr.experiments.workers import describe
from cuolr.files import content_hash, part_of, versions
from cuolr.output_lock import writing
from cuolr.progress import Stages

SUMMARY_FILE = "real.json"
# Reference rankers that learn from labels of the training queries, which a real log does not have.
NEED_LABELS = ("oracle", "oracle-best", "skyline")


@dataclass(frozen=True)
class RealRequest:
    """What to run.

    Attributes:
        experiment: Its methods and seeds are run; click models and logging policies do not apply.
        data: The log.
        out: Folder of the results.
        only: Condition on the cells; see `select`.
        command: The command that was typed.
    """

    experiment: Experiment
    data: RealData
    out: Path
    only: str = ""
    command: str = ""


def run_real(
    request: RealRequest, say: Callable[[str], None], stages: Stages
) -> tuple[RealSummary, Mapping[Cell, str]]:
    """Run what has no result yet, and summarise all.

    Args:
        request: What to run.
        say: Shows a message for each cell that was run.
        stages: Receives the cells that have a result.

    Returns:
        The summary, also written to the folder, and the error of each cell that failed.
    """
    with writing(request.out):
        return _run_real(request, say, stages)


def _run_real(
    request: RealRequest, say: Callable[[str], None], stages: Stages
) -> tuple[RealSummary, Mapping[Cell, str]]:
    _check_folder(request.out)
    cells = real_cells(request)
    (request.out / "cells").mkdir(parents=True, exist_ok=True)
    results: dict[str, list[RealResult]] = {}
    failed: dict[Cell, str] = {}
    progress = stages("cells", len(cells))
    for number, cell in enumerate(cells, start=1):
        file = part_of(request.out, f"cells/{_name(request, cell)}.json")
        result = _earlier(file)
        try:
            if result is None:
                result = measure_method(request.experiment, cell, request.data)
                write_hashed(file, result.as_dict())
                say(f"{number}/{len(cells)} {cell}: {result.seconds:.0f} s")
            results.setdefault(cell.method, []).append(result)
        except (InputError, RuntimeError, ValueError, MemoryError) as error:
            failed[cell] = describe(error)
            say(f"{cell}: failed: {failed[cell]}")
        progress(1)
    if not request.data.can_train:
        results |= {name: [result] for name, result in click_rates(request.data).items()}
    logging = next((name for name in results if _is_logging(request.experiment, name)), None)
    summary = summarise(request.data, results, logging)
    description = {"format": FORMAT, "command": request.command, "versions": versions()}
    write_hashed(request.out / SUMMARY_FILE, {**description, "title": request.experiment.title, **summary.as_dict()})
    return summary, failed


def real_cells(request: RealRequest) -> list[Cell]:
    """The methods of the experiment that a real log allows, and what they are compared with; none if none can learn."""
    experiment = request.experiment
    if not request.data.can_train:
        return []
    methods = [name for name in experiment.methods if _applies_to_real_logs(experiment.method_named(name))]
    first = experiment.first_seed
    cells = [
        Cell(name, seed=seed)
        for name in dict.fromkeys([*methods, NAIVE])
        for seed in range(first, first + (1 if experiment.method_named(name).is_reference else experiment.seeds))
    ]
    chosen = select(cells, experiment, request.only)
    beside = [cell for cell in cells if cell.method == NAIVE or _is_logging(experiment, cell.method)]
    return list(dict.fromkeys([*chosen, *beside]))  # naive and the logging policy beside every method


def _applies_to_real_logs(method: Method) -> bool:
    return method.learner not in NEED_LABELS and not method.true_examination


def read_summary(folder: Path) -> dict[str, Any]:
    """The summary of results in a folder, as JSON values."""
    return read_hashed(part_of(folder, SUMMARY_FILE), FORMATS)


def _is_logging(experiment: Experiment, method: str) -> bool:
    return method in experiment.methods and experiment.method_named(method).learner == "logging"


def _check_folder(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise InputError(f"{out}: expected a folder for the results, found a file; choose another path")
    if out.is_dir() and any(out.iterdir()) and not (out / "cells").is_dir():
        raise InputError(f"{out}: not a folder of results; choose another path")
    if (out / "experiment.json").exists():
        raise InputError(f"{out}: has the results of an experiment on simulated logs; choose another path")


def _name(request: RealRequest, cell: Cell) -> str:
    """The cell in words, and a hash of everything that affects its result, except the code."""
    config = request.experiment.config_of(cell)
    decisive = [FORMAT, request.data.digest, cell.seed, "logging" if config is None else config.as_dict()]
    readable = re.sub(r"[^a-z0-9.+-]+", "-", str(cell).lower()).strip("-")
    return f"{readable[:100]}-{content_hash(decisive)[:12]}"


def _earlier(file: Path) -> RealResult | None:
    """A saved result; None if there is none, or if it is damaged."""
    try:
        return RealResult.from_dict(read_hashed(file, FORMATS))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
