"""Time and memory of training the default learner, by sessions: one list for each query, and all lists distinct."""

import multiprocessing
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from benchmarks.table import Row, peak_memory, torch_threads
from cuolr.clicks.simulate import Simulation, simulate_to
from cuolr.clicks.ubm import UserBrowsingModel
from cuolr.data.synthetic import generate
from cuolr.policies.plackett_luce import StochasticLogger
from cuolr.policies.policy import RankingPolicy
from cuolr.supervised.ranksvm import fit_ranksvm

Logger: TypeAlias = RankingPolicy | StochasticLogger

QUERIES, K, STEPS = 1_000, 10, 50
SESSIONS = (100_000, 1_000_000)


@dataclass(frozen=True)
class Cost:
    """What training took: CPU seconds, peak memory in bytes, and the number of documents that the log shows."""

    seconds: float
    memory: int
    documents: int


def run() -> list[Row]:
    """Train in a process for each log."""
    dataset = generate("web10k-like", QUERIES, seed=1)
    policy = fit_ranksvm(dataset, 0.01)
    loggers: dict[str, Logger] = {"one list": policy, "all lists distinct": StochasticLogger(policy, temperature=1.0)}
    costs: dict[str, list[Cost]] = {name: [] for name in loggers}
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as place:
        for name, logger in loggers.items():
            for sessions in SESSIONS:
                folder = Path(place) / f"{name} {sessions}"
                simulate_to(folder, Simulation(dataset, logger, UserBrowsingModel(), sessions, K))
                with multiprocessing.get_context("spawn").Pool(1) as pool:
                    cost = pool.apply(_train, (folder,))
                costs[name].append(cost)
                said = f"factored, {name}, {sessions:,} sessions, {cost.documents:,} documents"
                rows += [
                    Row(f"{said}: {STEPS} steps", cost.seconds, "CPU s", "", True),
                    Row(f"{said}: peak memory", cost.memory / 1e9, "GB", "", True),
                ]
    one, distinct = costs.values()
    for name, (first, last) in (("one list", (one[0], one[-1])), ("all lists distinct", (distinct[0], distinct[-1]))):
        ratio = last.seconds / first.seconds
        times = SESSIONS[-1] // SESSIONS[0]
        rows.append(Row(f"factored, {name}: time of {times} times the sessions", ratio, "×", "≤ 1.5", ratio <= 1.5))
    per_document = distinct[0].seconds / distinct[0].documents / (one[0].seconds / one[0].documents)
    rows.append(Row("factored, time per document: distinct / one list", per_document, "×", "≤ 1", per_document <= 1))
    return rows


def _train(folder: Path) -> Cost:
    from cuolr.estimator import Ranker
    from cuolr.logs.log_folder import load_click_log

    start = time.process_time()
    with torch_threads(1):
        log = load_click_log(folder)
        Ranker(steps=STEPS, settings={"learner.threads": 1}).fit(log)
    documents = len(np.unique(log.documents[log.where]))
    return Cost(time.process_time() - start, peak_memory(), documents)
