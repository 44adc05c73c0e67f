"""Runs of training that are made in one process by the tests, and in two by torchrun, which starts this module."""

import dataclasses
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cuolr.errors import InputError
from cuolr.logs.clicklog import ClickLog
from cuolr.policies.policy import RankingPolicy
from cuolr.training import distributed
from cuolr.training.base_learner import LEARNERS
from cuolr.training.loop import TrainingResult
from cuolr.training.presets.configure import RunConfig, configure
from tests.small_log import counted_log, small_log
from tests.training.tasks import fit_log

# cm-ipw is ipw's loss with other weights, and needs propensities.
LEARNERS_IN_PARTS = [name for name in LEARNERS.names() if LEARNERS.get(name).data_parallel and name != "cm-ipw"]
STEPS = 12
Step = Callable[[int, Mapping[str, float]], None]


def log_for(name: str) -> ClickLog:
    """Lists of different length that stand for different numbers of sessions."""
    log = small_log(rows=60) if LEARNERS.get(name).log_form == "sessions" else counted_log(rows=60)
    return dataclasses.replace(log, examination=np.ones(log.ranking.shape) / np.arange(1, 6))


def config_for(name: str, **training: Any) -> RunConfig:
    """Small and fast to learn; gradients are clipped, batches cannot be halved, and what is random is asked for."""
    known = [field.name for field in dataclasses.fields(LEARNERS.get(name).Config)]
    settings: dict[str, Any] = {"learner.hidden": [8, 8], "learner.max_gradient_norm": 0.05}
    settings |= {f"learner.{field}": 0.005 for field in known if field.endswith("learning_rate")}
    if "candidates" in known:
        settings |= {"learner.candidates": "all", "learner.max_unshown": 2, "learner.encoder": "position+previous"}
    if name == "sac":
        settings |= {"learner.entropy_weight": "automatic"}
    training = {"steps": STEPS, "batch_size": 15, "validate_every": 5, "patience": 0, **training}
    return configure(name, "paper", settings | {f"training.{key}": value for key, value in training.items()})


def train(name: str, folder: Path, resume: bool = False, progress: Step | None = None) -> TrainingResult:
    return fit_log(log_for(name), config_for(name), folder=folder, resume=resume, progress=progress)


def stopped_early() -> TrainingResult:
    """A run whose validation, which only the first process may ask for, says that it gets worse."""
    scores = [0.5, 0.4, 0.3, 0.2]

    def validate(_: RankingPolicy) -> float:
        assert distributed.is_first()
        return scores.pop(0)

    return fit_log(log_for("naive"), config_for("naive", validate_every=2, patience=2), validate)


def interrupt_last_process(step: int, _: Mapping[str, float]) -> None:
    if step == 7 and (distributed.processes() == 1 or not distributed.is_first()):
        os.kill(os.getpid(), signal.SIGINT)


def refusals(out: Path) -> list[str]:
    """What is said where it cannot be done."""
    runs: list[Callable[[], Any]] = [
        lambda: fit_log(small_log(), configure("lightgbm")),
        lambda: fit_log(log_for("naive"), config_for("naive", batch_size=1)),
        lambda: train("naive", out / "naive"),
    ]
    problems = []
    for run in runs:
        try:
            run()
        except InputError as error:
            problems.append(str(error))
    return problems


def summary(result: TrainingResult) -> list[Any]:
    assert result.best is None or result.best.step in result.validations
    return [result.outcome, result.steps, list(result.validations.values())]


def threads() -> list[str]:
    """The names of those that this process has, where the system tells."""
    return [file.read_text().strip() for file in Path("/proc/self/task").glob("*/comm")]


def all_runs(out: Path) -> dict[str, Any]:
    """Everything, each run with a folder of its own."""
    results = {name: summary(train(name, out / name)) for name in LEARNERS_IN_PARTS}
    results["stopped early"] = summary(stopped_early())
    results["interrupted"] = summary(train("cql", out / "interrupted", progress=interrupt_last_process))
    results["resumed"] = summary(train("cql", out / "interrupted", resume=True))
    return {**results, "refusals": refusals(out)}


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    with distributed.joined():
        (folder / f"{os.environ['RANK']}.json").write_text(json.dumps(all_runs(folder)))
    (folder / f"{os.environ['RANK']}.threads").write_text("\n".join(threads()))
