"""Time and memory of training the default learner and of assessing its model, by sessions.

With one list for each query, and with all lists distinct. `python -m benchmarks.training_cost --sessions 1000000
100000000 --counted` simulates the sessions in parts, counts these, by document if lists are distinct, and deletes them.
"""

import argparse
import multiprocessing
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from benchmarks.count_parts import PART, write_parts
from benchmarks.table import Row, peak_memory, torch_threads
from cuolr.cli.terminal import show_table
from cuolr.clicks.simulate import Simulation, simulate_to
from cuolr.clicks.ubm import UserBrowsingModel
from cuolr.data.synthetic import generate
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.count_parts import count_parts
from cuolr.logs.counting import CountedBy
from cuolr.policies.policy import RankingPolicy
from cuolr.policies.random_policy import UniformLogger
from cuolr.supervised.ranksvm import fit_ranksvm

Logger: TypeAlias = RankingPolicy | UniformLogger

QUERIES, K, STEPS = 1_000, 10, 50
SESSIONS = (100_000, 1_000_000)
# How sessions are counted with each kind of logging policy.
KINDS: dict[str, CountedBy] = {"one list": "list", "all lists distinct": "document"}


@dataclass(frozen=True)
class Cost:
    """What a process took.

    Attributes:
        seconds: CPU seconds, without the imports.
        memory: Peak memory in bytes.
        libraries: Of which before anything was read.
        data: Bytes of the features and of the rows of the log.
        rows: Rows of the log.
        documents: Documents that the log shows.
    """

    seconds: float
    memory: int
    libraries: int
    data: int
    rows: int
    documents: int

    @property
    def per_data(self) -> float:
        """Peak memory beside the libraries, over the data."""
        return (self.memory - self.libraries) / self.data


def run() -> list[Row]:
    """Train from sessions, and from counts with one list for each query."""
    return [
        *_slopes(SESSIONS, tuple(KINDS), counted=False),
        *_slopes(SESSIONS, ("one list",), counted=True),
    ]


def _slopes(numbers: Sequence[int], kinds: Sequence[str], counted: bool) -> list[Row]:
    """Each number of sessions, and the last one over the first."""
    dataset = generate("web10k-like", QUERIES, seed=1)
    loggers: dict[str, Logger] = {"one list": fit_ranksvm(dataset, 0.01), "all lists distinct": UniformLogger()}
    rows: list[Row] = []
    trained: dict[str, Cost] = {}
    for kind in kinds:
        name = f"factored, {kind}, {'counted' if counted else 'sessions'}"
        costs: list[tuple[Cost, Cost | None]] = []
        for sessions in numbers:
            simulation = Simulation(dataset, loggers[kind], UserBrowsingModel(), sessions, K)
            costs.append(_costs(simulation, KINDS[kind] if counted else None))
            rows += _rows(f"{name}, {sessions:,}", *costs[-1])
        (first, first_assessed), (last, last_assessed) = costs[0], costs[-1]
        trained[kind] = first
        times = f"{numbers[-1] / numbers[0]:g} times the sessions"
        rows.append(_ratio(f"{name}: time of {times}", last.seconds / first.seconds, 1.5))
        if first_assessed is not None and last_assessed is not None:
            rows.append(_ratio(f"{name}: assess {times}", last_assessed.seconds / first_assessed.seconds, 1.5))
    if len(trained) > 1:
        one, distinct = trained.values()
        ratio = distinct.seconds / distinct.documents / (one.seconds / one.documents)
        rows.append(_ratio("factored, time per document: distinct / one list", ratio, 1))
    return rows


def _costs(simulation: Simulation, counted_by: CountedBy | None) -> tuple[Cost, Cost | None]:
    """Of training; and of assessing from counts. Each in a process of its own."""
    with tempfile.TemporaryDirectory() as place:
        log, counts, model = (Path(place) / name for name in ("LOG", "COUNTS", "MODEL"))
        if counted_by is None:
            simulate_to(log, simulation)
            return _in_process(_train, (log, model)), None
        # Sessions that would not fit in memory together are simulated and counted in parts.
        parts = replace(simulation, sessions=min(PART, simulation.sessions))
        _in_process(write_parts, (Path(place), parts, simulation.sessions))
        _in_process(_count, (log, Path(place) / "PARTS", counts, counted_by))
        return _in_process(_train, (counts, model)), _in_process(_assess, (counts, model))


def _rows(name: str, trained: Cost, assessed: Cost | None) -> list[Row]:
    said = f"{name}, {trained.rows:,} rows, {trained.documents:,} documents"
    rows = [
        Row(f"{said}: {STEPS} steps", trained.seconds, "CPU s", "", True),
        Row(f"{said}: peak memory", trained.memory / 1e9, "GB", "", True),
        _ratio(f"{said}: peak memory beside the libraries / data", trained.per_data, 2),
    ]
    if assessed is not None:
        rows += [
            Row(f"{name}: assess", assessed.seconds, "CPU s", "", True),
            Row(f"{name}: assess, peak memory", assessed.memory / 1e9, "GB", "", True),
        ]
    return rows


def _ratio(name: str, ratio: float, most: float) -> Row:
    return Row(name, ratio, "×", f"≤ {most:g}", ratio <= most)


def _in_process(job: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(job, arguments)


def _count(folder: Path, parts: Path, counts: Path, by: CountedBy) -> None:
    count_parts(folder, [parts], counts, by)
    shutil.rmtree(parts)


def _train(folder: Path, model: Path) -> Cost:
    from cuolr.estimator import Ranker
    from cuolr.logs.log_folder import load_click_log

    libraries, start = _libraries(), time.process_time()
    with torch_threads(1):
        log = load_click_log(folder, ids=False, documents=True)
        ranker = Ranker(steps=STEPS, settings={"learner.threads": 1}).fit(log)
    cost = _cost(log, libraries, start)
    ranker.save(model)
    return cost


def _assess(folder: Path, model: Path) -> Cost:
    from cuolr.logs.log_folder import load_click_log
    from cuolr.off_policy.assess import assess
    from cuolr.policies.model_folder import load_policy

    libraries, start = _libraries(), time.process_time()
    with torch_threads(1):
        log = load_click_log(folder, ids=False, documents=True)
        assess(load_policy(model), log)
    return _cost(log, libraries, start)


def _libraries() -> int:
    """The memory of Python and of all that training imports, of which torch imports a part with its first optimiser."""
    import lightgbm  # noqa: F401
    import torch

    torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))])
    return peak_memory()


def _cost(log: ClickLog, libraries: int, start: float) -> Cost:
    seconds, memory = time.process_time() - start, peak_memory()
    # The counts of a log of sessions are one number that is repeated without taking memory.
    data = log.candidates.features.nbytes + sum(each.nbytes for each in log.columns.values() if all(each.strides))
    return Cost(seconds, memory, libraries, data, len(log), len(np.unique(log.documents[log.where])))


def main() -> None:
    """Measure as asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, nargs="+", default=SESSIONS)
    parser.add_argument("--kind", choices=list(KINDS), action="append")
    parser.add_argument("--counted", action="store_true", help="count the sessions, and train and assess from counts")
    options = parser.parse_args()
    rows = _slopes(options.sessions, options.kind or list(KINDS), options.counted)
    lines = [[row.name, f"{row.value:,.3g}", row.unit, row.goal, "yes" if row.met else "NO"] for row in rows]
    show_table("training", ["measured", "value", "unit", "goal", "met"], lines)


if __name__ == "__main__":
    main()
