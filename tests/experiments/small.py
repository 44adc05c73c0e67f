"""An experiment of seconds, workers that run its cells one after the other, here, and a look-alike of a real log."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from cuolr.clicks.click_model import click_model
from cuolr.clicks.simulate import simulate
from cuolr.data.synthetic import generate_splits
from cuolr.experiments.cells import run_cell
from cuolr.experiments.datasets import ExperimentData, generated
from cuolr.experiments.results import CellResult
from cuolr.experiments.results_folder import ResultsFolder
from cuolr.experiments.runner import plan, run
from cuolr.experiments.spec import Cell, Experiment
from cuolr.experiments.spec_file import parse_experiment
from cuolr.experiments.workers import Failure, Finished, describe
from cuolr.logs.clicklog import ClickLog
from cuolr.policies.policy import RankingPolicy
from cuolr.policies.random_policy import UniformLogger
from cuolr.supervised.ranksvm import fit_ranksvm
from cuolr.supervised.skyline import only_shown
from cuolr.types import RankingDataset

SMALL: dict[str, Any] = {
    "title": "Small",
    "seeds": 2,
    "measures": ["ndcg@5", "err@5"],
    "randomised_lists": 2_000,
    "k": 5,
    "training": {"steps": 6, "validate_every": 2, "batch_size": 16},
    "method": {
        "LOGGING": {"learner": "logging"},
        "IPW": {"learner": "ipw", "settings": {"learner.hidden": [8, 8]}},
        "CQL": {
            "learner": "cql",
            "settings": {"learner.hidden": [8, 8], "learner.encoder": "position"},
            "sweep": {"learner.conservative_weight": [0, 0.1]},
        },
    },
    "grid": [
        {"click_model": ["pbm", "dcm"], "method": ["LOGGING", "naive", "IPW", "CQL"], "sessions_per_query": [10]},
    ],
}


def small(**changes: Any) -> Experiment:
    return parse_experiment({**SMALL, **changes})


def tiny_data(seed: int = 1) -> ExperimentData:
    return generated("tiny", 30, seed)


class InTurn:
    """Workers that do a cell when they are asked for the next one."""

    free = 2

    def __init__(self, experiment: Experiment, spoil: Callable[[Cell], None] = lambda _: None) -> None:
        self.experiment, self.spoil = experiment, spoil
        self.waiting: list[tuple[Cell, Any, Any]] = []
        self.shared: list[Any] = []
        self.ran: list[Cell] = []

    def share(self, thing: Any) -> int:
        self.shared.append(thing)
        return len(self.shared) - 1

    def forget(self, handle: int) -> None:
        self.shared[handle] = None

    def submit(self, cell: Cell, splits: int, clicks: int | None) -> None:
        self.waiting.append((cell, self.shared[splits], None if clicks is None else self.shared[clicks]))

    def next_finished(self) -> Iterable[Finished]:
        cell, splits, clicks = self.waiting.pop(0)
        self.ran.append(cell)
        try:
            self.spoil(cell)
            yield cell, run_cell(self.experiment, cell, splits, clicks)
        except (ValueError, ArithmeticError) as error:
            yield cell, Failure(describe(error))


def run_small(folder: ResultsFolder, experiment: Experiment | None = None, workers: InTurn | None = None) -> InTurn:
    experiment = experiment or small()
    workers = workers or InTurn(experiment)
    planned = plan(experiment, tiny_data())
    run(planned, list(planned.names), folder, workers, lambda _: None)
    return workers


def numbers(result: CellResult) -> tuple[Any, ...]:
    """All of a result but for the time that it took."""
    values = {measure: values.tolist() for measure, values in result.per_query.items()}
    return str(values), result.measures, result.validations, result.best_step


def real_log(
    queries: int = 60, sessions: int = 6_000, model: str = "pbm", k: int = 5, seed: int = 1
) -> tuple[ClickLog, RankingDataset, RankingPolicy]:
    """A log half of whose lists are in random order, the documents with their relevance, and the production ranker.

    The production ranker shows the same k documents of a query to all users, in its order or in random order.
    """
    train, _, _ = generate_splits("tiny", queries, 1, 1, seed)
    production = fit_ranksvm(train, 0.05, seed)
    shown = only_shown(train, production.rank(train.candidates, k))
    names = np.array([f"d{i}" for i in range(shown.candidates.n_documents)])
    shown = replace(shown, candidates=replace(shown.candidates, document_ids=names))
    clicks = click_model(model)
    parts = [
        simulate(shown, production, clicks, sessions, k, seed),
        simulate(shown, UniformLogger(), clicks, sessions, k, seed + 1),
    ]
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("query", "ranking", "clicks", "count")
    }
    columns["randomised"] = np.repeat([False, True], [len(part) for part in parts])
    return ClickLog.from_columns(shown.candidates, columns, aggregated=False), shown, production
