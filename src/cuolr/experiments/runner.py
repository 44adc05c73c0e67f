"""All cells of an experiment: what is left to do is done, and every result is written as soon as it is there."""

import platform
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeAlias

import cuolr
from cuolr.clicks.click_model import click_model_table
from cuolr.clicks.randomisation import randomise
from cuolr.config import to_dict
from cuolr.examination.propensities import Propensities
from cuolr.experiments.cells import Clicks, logging_policy, simulate_clicks, takes_propensities
from cuolr.experiments.datasets import ExperimentData, Splits, digest, digest_of_ids
from cuolr.experiments.results import ResultsFolder, name_of
from cuolr.experiments.spec import YARDSTICKS, Cell, Experiment
from cuolr.experiments.workers import Failure, Finished, Workers, describe
from cuolr.policies.policy import RankingPolicy

# Packages that numbers depend on, where they are there.
DECIDING = ("torch", "numpy", "scipy", "scikit-learn", "lightgbm", "xgboost", "xgboost-cpu")
# Told of each cell that finished or failed.
Progress: TypeAlias = Callable[[Finished], None]
# A fold and a seed, and all else that decides a log.
Source: TypeAlias = tuple[int, int, str, str, int]


@dataclass(frozen=True)
class Plan:
    """The cells of an experiment on some data.

    Attributes:
        experiment: What to run.
        data: On what.
        names: The file name of each cell's result.
        command: What the user typed.
    """

    experiment: Experiment
    data: ExperimentData
    names: Mapping[Cell, str]
    command: str


def plan(experiment: Experiment, data: ExperimentData, command: str = "") -> Plan:
    """Name the cells by all that decides their numbers; this reads the data.

    Args:
        experiment: What to run.
        data: On what.
        command: What the user typed, to be told in the report.
    """
    cells = experiment.cells(data.folds)
    folds = {cell.fold for cell in cells}
    digests = {fold: digest(data.load(fold)) for fold in folds}
    ids = {fold: digest_of_ids(data.load(fold)) for fold in folds}
    names = {cell: name_of(cell, decisive(experiment, cell, digests[cell.fold], ids[cell.fold])) for cell in cells}
    return Plan(experiment, data, names, command)


def decisive(experiment: Experiment, cell: Cell, data: str, ids: str) -> dict[str, Any]:
    """All that decides the numbers of a cell, but for the code.

    Args:
        experiment: What to run.
        cell: Which of its cells.
        data: See `digest`.
        ids: See `digest_of_ids`.
    """
    method, config = experiment.method_named(cell.method), experiment.config_of(cell)
    values: dict[str, Any] = {
        "data": data,
        "fold": cell.fold,
        "seed": cell.seed,
        "method": method.learner,
        "settings": {} if config is not None else method.settings,
        "measures": experiment.measures,
        "split": experiment.split,
    }
    if cell.logging:
        logging = experiment.logging_named(cell.logging)
        values["logging"] = to_dict(logging)
        if logging.name == "random":
            values["ids"] = ids
    if method.learner == "skyline":
        values["k"] = experiment.k
    if config is not None:
        values |= {
            "config": config.as_dict(),
            "validation": experiment.validation,
            "click_model": click_model_table(experiment.click_model_named(cell.click_model)),
            "sessions_per_query": cell.sessions_per_query,
            "k": experiment.k,
        }
    if takes_propensities(experiment, cell):
        estimated_under = experiment.click_model_named(method.propensities or cell.click_model)
        values["propensities"] = [click_model_table(estimated_under), experiment.randomised_lists]
    return values


def run(plan: Plan, wanted: Sequence[Cell], folder: ResultsFolder, workers: Workers, progress: Progress) -> None:
    """Run the cells that are not there yet.

    Args:
        plan: The whole experiment.
        wanted: Which of its cells.
        folder: Where results go; what is there already is not run again.
        workers: What runs them.
        progress: Told of each cell that finished or failed.
    """
    folder.start(plan.experiment, describe_data(plan), versions(), plan.names)
    todo = [cell for cell in wanted if not folder.is_finished(plan.names[cell])]
    source = _Sources(plan.experiment, plan.data, workers, todo)
    waiting = iter(todo)
    left = len(todo)
    while left:
        for cell in _take(waiting, workers.free):
            try:
                splits, clicks = source.of(cell)
            except Exception as error:
                left -= 1
                _keep(folder, plan.names[cell], (cell, Failure(describe(error))), progress)
                source.done_with(cell)
                continue
            workers.submit(cell, splits, clicks)
        if not left:
            break
        for finished in workers.next_finished():
            left -= 1
            _keep(folder, plan.names[finished[0]], finished, progress)
            source.done_with(finished[0])


def _keep(folder: ResultsFolder, name: str, finished: Finished, progress: Progress) -> None:
    if isinstance(finished[1], Failure):
        folder.fail(name, finished[1].error)
    else:
        folder.finish(name, finished[1])
    progress(finished)


def _take(cells: Iterator[Cell], count: int) -> Iterable[Cell]:
    for _ in range(count):
        if (cell := next(cells, None)) is None:
            return
        yield cell


class _Sources:
    """The data and logs of the cells: each read or made once, when its first cell comes.

    A log, and what workers are handed of the data, goes when its last cell is done.
    """

    def __init__(self, experiment: Experiment, data: ExperimentData, workers: Workers, cells: Sequence[Cell]) -> None:
        self._experiment, self._data, self._workers = experiment, data, workers
        self._cells = list(cells)
        self._users = Counter(key for cell in cells for key in (cell.fold, _source(cell)))
        self._splits: dict[int, Splits] = {}
        self._handles: dict[int | Source, Any] = {}
        self._policies: dict[tuple[int, int, str], RankingPolicy] = {}
        self._propensities: dict[tuple[int, str], Propensities] = {}

    def of(self, cell: Cell) -> tuple[Any, Any | None]:
        """The handles of a cell's data and of its log."""
        if cell.fold not in self._handles:
            self._splits[cell.fold] = self._data.load(cell.fold)
            self._handles[cell.fold] = self._workers.share(self._splits[cell.fold])
        if self._experiment.method_named(cell.method).learner in YARDSTICKS:
            return self._handles[cell.fold], None
        key = _source(cell)
        if key not in self._handles:
            self._handles[key] = self._workers.share(self._clicks(cell))
        return self._handles[cell.fold], self._handles[key]

    def done_with(self, cell: Cell) -> None:
        """What no other cell needs goes."""
        for key in (cell.fold, _source(cell)):
            self._users[key] -= 1
            if not self._users[key] and key in self._handles:
                self._workers.forget(self._handles.pop(key))
        if not self._users[cell.fold]:
            self._splits.pop(cell.fold, None)

    def _clicks(self, cell: Cell) -> Clicks:
        experiment, train = self._experiment, self._splits[cell.fold]["train"]
        key = (cell.fold, cell.seed, cell.logging)
        if key not in self._policies:
            self._policies[key] = logging_policy(experiment.logging_named(cell.logging), train, cell.seed)
        model = experiment.click_model_named(cell.click_model)
        group = [other for other in self._cells if _source(other) == _source(cell)]
        needed = {
            experiment.method_named(other.method).propensities or cell.click_model
            for other in group
            if takes_propensities(experiment, other)
        }
        propensities = {name: self._estimate(cell, name) for name in sorted(needed)}
        return simulate_clicks(train, self._policies[key], model, cell, experiment.k, propensities)

    def _estimate(self, cell: Cell, name: str) -> Propensities:
        key = (cell.fold, f"{name} {cell.seed}")
        if key not in self._propensities:
            train, model = self._splits[cell.fold]["train"], self._experiment.click_model_named(name)
            k = min(self._experiment.k, int(train.candidates.sizes.max()))
            lists = self._experiment.randomised_lists
            self._propensities[key] = randomise(train, model, lists, k, cell.seed)
        return self._propensities[key]


def _source(cell: Cell) -> Source:
    return cell.fold, cell.seed, cell.logging, cell.click_model, cell.sessions_per_query


def describe_data(plan: Plan) -> dict[str, Any]:
    """The data, for the report."""
    splits = plan.data.load(min((cell.fold for cell in plan.names), default=0))
    sizes = {name: split.candidates.n_queries for name, split in splits.items()}
    return {
        "name": plan.data.name,
        "paper_name": plan.data.paper_name,
        "folds": list(plan.data.folds),
        "queries": sizes,
        **({"command": plan.command} if plan.command else {}),
    }


def versions() -> dict[str, str]:
    """What it was run with."""
    return {
        "cuolr": cuolr.__version__,
        **{name: found for name in DECIDING if (found := _version(name)) is not None},
        "python": platform.python_version(),
        "machine": platform.machine(),
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
