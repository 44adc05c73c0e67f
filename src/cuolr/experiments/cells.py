"""One cell of an experiment: train a method on a log, or a reference ranker on labels, and measure it on test queries.

Left of the wall: it simulates and evaluates. The learner gets the log and a validation function.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cuolr.clicks.click_model import ClickModel
from cuolr.clicks.simulate import Simulation
from cuolr.evaluation.evaluate import evaluate, score_on
from cuolr.examination.propensities import Propensities
from cuolr.experiments.datasets import Splits
from cuolr.experiments.results import CellResult
from cuolr.experiments.spec import Cell, Experiment, Logging, oracle_settings
from cuolr.logs.aggregate import aggregate
from cuolr.logs.clicklog import ClickLog
from cuolr.policies.policy import RankingPolicy
from cuolr.policies.random_policy import RandomPolicy
from cuolr.supervised.oracle import fit_lambdamart
from cuolr.supervised.oracle_best import fit_best
from cuolr.supervised.ranksvm import fit_ranksvm
from cuolr.supervised.skyline import only_examined, only_shown
from cuolr.training.fit import FitRequest, Validation, fit
from cuolr.training.log_form import TrainingLog
from cuolr.types import Candidates, RankingDataset

DIGITS = 5
# Placeholder for the training queries in a log sent to workers, which have them already.
NO_CANDIDATES = Candidates(np.empty((0, 0), np.float32), np.zeros(1, np.int64), np.empty(0, np.str_))


@dataclass(frozen=True)
class Clicks:
    """What the learners of a group of cells share.

    Attributes:
        log: Raw sessions with what users examined, without the candidates, which are the training queries.
        aggregated: The same sessions, one row per list.
        propensities: By the name of the click model that they were estimated under.
    """

    log: ClickLog
    aggregated: ClickLog
    propensities: Mapping[str, Propensities]


def logging_policy(logging: Logging, train: RankingDataset, seed: int) -> RankingPolicy:
    """The policy that shows the lists of a log."""
    if logging.name == "random":
        return RandomPolicy(seed)
    return fit_ranksvm(train, logging.fraction, seed)


def simulate_clicks(
    train: RankingDataset,
    policy: RankingPolicy,
    model: ClickModel,
    cell: Cell,
    k: int,
    propensities: Mapping[str, Propensities],
) -> Clicks:
    """The log of the group of cells that `cell` belongs to."""
    sessions = cell.sessions_per_query * train.candidates.n_queries
    longest = int(train.candidates.sizes.max())
    log = Simulation(train, policy, model, sessions, min(k, longest), cell.seed, keep_examination=True).log()
    aggregated = aggregate(replace(log, examination=None))
    return Clicks(replace(log, candidates=NO_CANDIDATES), replace(aggregated, candidates=NO_CANDIDATES), propensities)


def log_of_cell(experiment: Experiment, cell: Cell, train: RankingDataset) -> ClickLog:
    """The sessions that the learner of a cell sees."""
    policy = logging_policy(experiment.logging_named(cell.logging), train, cell.seed)
    model = experiment.click_model_named(cell.click_model)
    clicks = simulate_clicks(train, policy, model, cell, experiment.k, {})
    return replace(clicks.log, candidates=train.candidates, examination=None)


def run_cell(experiment: Experiment, cell: Cell, splits: Splits, clicks: Clicks | None) -> CellResult:
    """Train and measure.

    Args:
        experiment: The experiment.
        cell: One of its cells.
        splits: Labelled queries for training, validation and test.
        clicks: The log to learn from; None for a reference ranker.
    """
    start = time.perf_counter()
    trained = _fit_reference(experiment, cell, splits) if clicks is None else _learn(experiment, cell, splits, clicks)
    seconds = time.perf_counter() - start
    evaluation = evaluate(trained.policy, splits[experiment.split], experiment.measures)
    return CellResult(
        measures=evaluation.means(),
        per_query=evaluation.per_query,
        seconds=round(seconds, 3),
        validations=trained.validations,
        best_step=trained.best_step,
        steps=trained.steps,
        log={} if clicks is None else _describe(clicks.aggregated),
        settings=trained.settings,
        notes=trained.notes,
    )


@dataclass(frozen=True)
class _Trained:
    policy: RankingPolicy
    validations: Mapping[int, float]
    best_step: int
    steps: int
    settings: Mapping[str, Any]
    notes: Mapping[str, Any]


def _learn(experiment: Experiment, cell: Cell, splits: Splits, clicks: Clicks) -> _Trained:
    method, config = experiment.method_named(cell.method), experiment.config_of(cell)
    assert config is not None
    validation = None
    if experiment.validation != "log":
        validation = Validation(score_on(splits["vali"], experiment.validation))
    candidates = splits["train"].candidates
    if method.true_examination:
        log = TrainingLog.of(only_examined(replace(clicks.log, candidates=candidates)))
    else:
        log = TrainingLog(
            clicks.log,
            lambda _: replace(clicks.log, candidates=candidates, examination=None),
            lambda _: replace(clicks.aggregated, candidates=candidates),
            lambda: clicks.propensities.get(method.propensities or cell.click_model),
        )
    result = fit(FitRequest(log, config, validation))
    if result.best is None or result.outcome == "interrupted":
        raise KeyboardInterrupt
    notes = {"validation": result.best.score, "stopped": result.outcome}
    return _Trained(result.best.policy, result.validations, result.best.step, result.steps, config.as_dict(), notes)


def _fit_reference(experiment: Experiment, cell: Cell, splits: Splits) -> _Trained:
    train, validation = splits["train"], splits["vali"]
    learner = experiment.method_named(cell.method).learner
    notes: dict[str, Any] = {}
    policy: RankingPolicy
    if learner == "logging":
        policy = logging_policy(experiment.logging_named(cell.logging), train, cell.seed)
    elif learner == "oracle":
        policy = fit_lambdamart(train, validation, oracle_settings(experiment.method_named(cell.method), cell.seed))
    else:
        if learner == "skyline":
            logger = logging_policy(experiment.logging_named(cell.logging), train, cell.seed)
            train = only_shown(train, logger.rank(train.candidates, experiment.k))
        best = fit_best(train, validation, cell.seed, threads=1)
        policy, notes = best.policy, {"chosen": best.name, "validation": dict(best.validation)}
    return _Trained(policy, {}, 0, 0, {}, notes)


def _describe(log: ClickLog) -> dict[str, Any]:
    """Statistics of a log, for the report."""
    shown = (log.where * log.count[:, None]).sum(axis=0)
    clicked = (log.clicks * log.where * log.count[:, None]).sum(axis=0)
    rate = clicked / np.maximum(shown, 1)
    return {"sessions": log.sessions, "rows": len(log), "click_rate": [round(float(value), DIGITS) for value in rate]}
