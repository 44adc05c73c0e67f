"""Training the default learner at WEB10K's size, beside LightGBM alone growing as many trees on the same rows.

Wall-clock time on all cores, on a machine that does nothing else. By default a small size; `python -m
benchmarks.trees_alone --queries 6000 --sessions 2000000 --steps 300` is WEB10K's.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import torch

from benchmarks.table import Row, as_measured, in_process, peak_memory, show_rows
from cuolr.clicks.simulate import Simulation, simulate_to
from cuolr.clicks.ubm import UserBrowsingModel
from cuolr.data.normalise import Normaliser
from cuolr.data.synthetic import generate
from cuolr.learners.rankers.lambdamart import LambdaMartRanker, QueryGroups
from cuolr.logs.counting import count_log
from cuolr.supervised.ranksvm import fit_ranksvm
from cuolr.training.fit import FitRequest, fit
from cuolr.training.log_form import TrainingLog
from cuolr.training.presets.configure import configure

QUERIES, SESSIONS, STEPS, K = 300, 60_000, 50, 10


def run() -> list[Row]:
    """Measure the small size."""
    return list(measure(QUERIES, SESSIONS, STEPS))


def measure(queries: int, sessions: int, steps: int) -> Iterator[Row]:
    """So many sessions, with one list for each query, counted; so many steps."""
    with tempfile.TemporaryDirectory() as name:
        log, counts = Path(name) / "LOG", Path(name) / "COUNTS"
        in_process(_simulate, log, counts, queries, sessions)
        seconds, alone, memory = in_process(_train, counts, steps)
    said = f"{queries:,} queries, {sessions:,} sessions, {steps} steps"
    yield Row(f"{said}: training", seconds, "s", "", True)
    for threads, trees in alone.items():
        yield Row(f"{said}: LightGBM alone, threads: {threads}", trees, "s", "", True)
    ratio = seconds / min(alone.values())
    yield Row(f"{said}: training / LightGBM alone", ratio, "×", "≤ 1.5", ratio <= 1.5)
    yield Row(f"{said}: peak memory of training", memory / 1e9, "GB", "≤ 1.5", memory <= 1.5e9)


def _simulate(log: Path, counts: Path, queries: int, sessions: int) -> None:
    dataset = generate("web10k-like", queries, seed=1)
    simulate_to(log, Simulation(dataset, fit_ranksvm(dataset, 0.01), UserBrowsingModel(), sessions, K))
    count_log(log, counts)


def _train(counts: Path, steps: int) -> tuple[float, dict[int, float], int]:
    """Seconds of training and, by threads, of LightGBM alone; peak memory of training."""
    # With the last policy kept, training never stops early: the steps are those that were asked for.
    config = configure("factored", "default", {"training.steps": steps, "training.keep": "last"})
    fitted: list[tuple[QueryGroups, dict[str, Any], Normaliser]] = []
    plain = LambdaMartRanker.__init__

    def remembering(self: LambdaMartRanker, lists: QueryGroups, parameters: Any, normaliser: Normaliser) -> None:
        fitted.append((lists, dict(parameters), normaliser))
        plain(self, lists, parameters, normaliser)

    with patch.object(LambdaMartRanker, "__init__", remembering):
        start = time.perf_counter()
        fit(FitRequest(TrainingLog.of_folder(counts), config))
        seconds = time.perf_counter() - start
    memory = peak_memory()
    threads = sorted({1, torch.get_num_threads()})
    return seconds, {count: sum(_grow(*each, count, steps) for each in fitted) for count in threads}, memory


def _grow(lists: QueryGroups, parameters: dict[str, Any], normaliser: Normaliser, threads: int, trees: int) -> float:
    import lightgbm

    start = time.perf_counter()
    features = lists.features if lists.rows is None else lists.features[lists.rows]
    settings = {
        "objective": "lambdarank",
        "verbosity": -1,
        "label_gain": list(cast(tuple[float, ...], lists.gain)),
        **parameters,
        "num_threads": threads,
    }
    data = lightgbm.Dataset(
        normaliser.natively(features), lists.grades, group=lists.sizes, weight=lists.weight, params=settings
    )
    lightgbm.train(settings, data, trees)
    return time.perf_counter() - start


def main() -> None:
    """Measure as asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("queries", QUERIES), ("sessions", SESSIONS), ("steps", STEPS)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    rows = as_measured(measure(options.queries, options.sessions, options.steps))
    show_rows("training beside its trees", rows)


if __name__ == "__main__":
    main()
