"""Runs the cells of an experiment that have no result, and writes each result as soon as it is available."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from cuolr.clicks.randomisation import randomise
from cuolr.examination.propensities import Propensities
from cuolr.experiments.cells import Clicks, logging_policy, simulate_clicks
from cuolr.experiments.datasets import ExperimentData, Splits
from cuolr.experiments.fingerprints import DataDigest, Digests, digests_to_dict, fingerprinted_name
from cuolr.experiments.results import Description
from cuolr.experiments.results_folder import ResultsFolder
from cuolr.experiments.spec import Cell, Experiment
from cuolr.experiments.workers import Failure, Finished, Workers, describe
from cuolr.files import versions
from cuolr.policies.policy import RankingPolicy

# Called with each cell that finished or failed.
Progress: TypeAlias = Callable[[Finished], None]
# What determines a log: fold, seed, logging policy, click model and sessions per query.
Source: TypeAlias = tuple[int, int, str, str, int]


@dataclass(frozen=True)
class Plan:
    """The cells of an experiment on a data set.

    Attributes:
        experiment: What to run.
        data: The data set.
        names: The name of each cell's result.
        digests: Digests of the data.
        command: The command that was typed.
    """

    experiment: Experiment
    data: ExperimentData
    names: Mapping[Cell, str]
    digests: Digests
    command: str


def plan(experiment: Experiment, data: ExperimentData, command: str = "") -> Plan:
    """Name the cells by their fingerprints; this reads the data.

    Args:
        experiment: What to run.
        data: The data set.
        command: The command that was typed, for the report.
    """
    cells = experiment.cells(data.folds)
    digests = {fold: DataDigest.of(data.load(fold)) for fold in dict.fromkeys(cell.fold for cell in cells)}
    names = {cell: fingerprinted_name(experiment, cell, digests) for cell in cells}
    return Plan(experiment, data, names, digests, command)


def run(plan: Plan, wanted: Sequence[Cell], folder: ResultsFolder, workers: Workers, progress: Progress) -> None:
    """Run the cells that have no result yet.

    Args:
        plan: The whole experiment.
        wanted: The cells to run.
        folder: Folder of the results.
        workers: The workers that run the cells.
        progress: Called with each cell that finished or failed.
    """
    folder.start(Description(plan.experiment, describe_data(plan), versions(), plan.names))
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
    """The data and logs of the cells. Each is created when its first cell needs it, and freed after its last cell."""

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
        if self._experiment.method_named(cell.method).is_reference:
            return self._handles[cell.fold], None
        key = _source(cell)
        if key not in self._handles:
            self._handles[key] = self._workers.share(self._clicks(cell))
        return self._handles[cell.fold], self._handles[key]

    def done_with(self, cell: Cell) -> None:
        """Free what no other cell needs."""
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
            if experiment.takes_propensities(other)
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
    """The data, as saved results describe it."""
    splits = plan.data.load(min((cell.fold for cell in plan.names), default=0))
    return {
        "name": plan.data.name,
        "paper_name": plan.data.paper_name,
        "folds": list(plan.data.folds),
        "queries": {name: split.candidates.n_queries for name, split in splits.items()},
        "digests": digests_to_dict(plan.digests),
        **({"command": plan.command} if plan.command else {}),
    }
