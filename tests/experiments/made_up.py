"""Folders of results with made-up numbers that look like real ones."""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cuolr.experiments.results import CellResult, Description, Results, name_of
from cuolr.experiments.results_folder import ResultsFolder, read_results
from cuolr.experiments.spec import Cell, Experiment
from cuolr.experiments.spec_file import parse_experiment

MEASURES = ("ndcg@3", "ndcg@5", "ndcg@10", "err@3", "err@5", "err@10")
VERSIONS = {"cuolr": "0.1.0", "python": "3.11", "torch": "2.13.0", "numpy": "2.4.6", "machine": "x86_64"}
DATA = {"name": "MQ2008", "paper_name": "mq2008", "folds": [1, 2, 3, 4, 5], "queries": {"test": 100}}
# How good each method is, between 0 = LOGGING and 1 = ORACLE.
QUALITY = {
    "LOGGING": 0.0,
    "ORACLE": 1.0,
    "naive": 0.3,
    "IPW": 0.45,
    "CM-IPW": 0.5,
    "DLA": 0.4,
    "CUOLR(SAC)": 0.62,
    "CUOLR(CQL)": 0.7,
}
CLICK_MODELS = ["pbm", "cascade", "ubm", "dcm", "ccm"]

# The value of each query by measure, for a cell.
PerQuery = Callable[[Cell, str], Any]


def method_tables() -> dict[str, Any]:
    learners = {"LOGGING": "logging", "ORACLE": "oracle", "CUOLR(SAC)": "sac", "CUOLR(CQL)": "cql"}
    return {name: {"learner": learners.get(name, name.lower())} for name in QUALITY}


def table1_like(**changes: Any) -> Experiment:
    table = {
        "title": "Five click models",
        "about": "Made-up numbers in the shape of the paper's first table.",
        "measures": list(MEASURES),
        "grid": [{"method": list(QUALITY), "click_model": CLICK_MODELS}],
        "method": method_tables(),
        "report": {"paper": ["table1_click_models", "appendix_click_models"]},
    }
    return parse_experiment(table | changes)


def sweep_like(**changes: Any) -> Experiment:
    weights = [0, 1e-3, 5e-3, 1e-2, 5e-2, 1e-1, 5e-1, 1, 5, 10, 50]
    methods = method_tables()
    methods["CQL"] = {"learner": "cql", "sweep": {"learner.conservative_weight": weights}}
    methods["SAC"] = {"learner": "sac"}
    table = {
        "title": "How conservative to be",
        "grid": [{"method": ["LOGGING", "ORACLE", "SAC", "CQL"], "click_model": CLICK_MODELS}],
        "method": methods,
        "report": {"curve": "value", "paper": ["sac_vs_cql_best_conservatism"], "baselines": ["SAC"]},
    }
    return parse_experiment(table | changes)


def sessions_like() -> Experiment:
    table = {
        "title": "How many sessions it takes",
        "grid": [
            {
                "method": ["LOGGING", "ORACLE", "naive", "DLA", "CUOLR(CQL)"],
                "click_model": ["pbm", "dcm"],
                "sessions_per_query": [1, 10, 100, 1000],
            }
        ],
        "method": method_tables(),
        "seeds": 3,
        "report": {"columns": "sessions_per_query", "curve": "sessions_per_query"},
    }
    return parse_experiment(table)


def quality_of(experiment: Experiment, cell: Cell) -> float:
    """Between LOGGING and ORACLE: less with fewer sessions, and away from the best conservative weight."""
    value = experiment.method_named(cell.method).swept_value
    if value is not None:
        return 0.75 - 0.08 * abs(math.log10(max(value, 1e-4)) + 2) / 2
    sessions = min(cell.sessions_per_query or 200, 200) / 200
    return QUALITY.get(cell.method, 0.6) * math.pow(sessions, 0.15)


def _random_values(experiment: Experiment, queries: int) -> PerQuery:
    def values(cell: Cell, measure: str) -> Any:
        level, family = int(measure.split("@")[1]), measure.split("@")[0]
        hard = np.random.default_rng([cell.fold, 7]).normal(0, 1, queries)
        hard[::17] = np.nan  # nothing relevant
        own = np.random.default_rng([cell.fold, cell.seed, *cell.method.encode(), *cell.click_model.encode()])
        base = 0.35 + 0.01 * level if family == "ndcg" else 0.2 + 0.008 * level
        lift = 0.12 * quality_of(experiment, cell) + 0.02 * own.normal()
        return np.clip(base + lift + 0.15 * hard + 0.05 * own.normal(0, 1, queries), 0, 1)

    return values


def made_up_result(cell: Cell, per_query: Mapping[str, Any]) -> CellResult:
    means = {measure: float(np.nanmean(values)) for measure, values in per_query.items()}
    is_learner = bool(cell.click_model)
    rng = np.random.default_rng([cell.fold, cell.seed, *cell.method.encode()])
    final = means.get("ndcg@10", 0.5)
    steps = list(range(25, 525, 25))
    rates = 0.5 * (1 + 0.1 * len(cell.click_model)) ** -np.arange(10.0)
    return CellResult(
        measures=means,
        per_query=per_query,
        seconds=float(rng.uniform(20, 60)),
        validations={s: final - 0.1 * np.exp(-s / 90) + 0.004 * rng.normal() for s in steps} if is_learner else {},
        best_step=400 if is_learner else 0,
        steps=500 if is_learner else 0,
        log={"sessions": 20_000, "rows": 470, "click_rate": rates.tolist()} if is_learner else {},
        settings={"learner": {"name": cell.method}, "training": {"steps": 500}} if is_learner else {},
        notes={},
    )


def write_made_up(
    folder: Path,
    experiment: Experiment,
    folds: tuple[int, ...] = (1, 2, 3, 4, 5),
    queries: int = 100,
    data: Mapping[str, Any] = DATA,
    per_query: PerQuery | None = None,
    fail: Callable[[Cell], str] = lambda cell: "",
    skip: Callable[[Cell], bool] = lambda cell: False,
) -> Results:
    """Write a folder of results.

    Args:
        folder: Where.
        experiment: What was run.
        folds: Of the data; none = seeds.
        queries: In each fold's test set.
        data: As the runner describes it.
        per_query: The numbers; by default random ones.
        fail: The error of a cell that failed.
        skip: Whether a cell is still to be run.
    """
    values = per_query or _random_values(experiment, queries)
    names = {cell: name_of(cell, {"made": "up"}) for cell in experiment.cells(folds)}
    results = ResultsFolder(folder)
    results.start(Description(experiment, data, VERSIONS, names))
    for cell, name in names.items():
        if error := fail(cell):
            results.fail(name, error)
        elif not skip(cell):
            numbers = {measure: np.asarray(values(cell, measure), np.float64) for measure in experiment.measures}
            results.finish(name, made_up_result(cell, numbers))
    return read_results(folder)
