"""Time and memory of training the default learner and of assessing its model, by sessions.

With one list for each query, and with all lists distinct. `python -m benchmarks.training_cost --sessions 1000000
10000000 100000000 --counted` simulates the sessions in parts, counts these, by document if lists are distinct, deletes
them, and measures `log-info`, too.
"""

import argparse
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from benchmarks.count_parts import PART, write_parts
from benchmarks.table import Row, as_measured, in_process, peak_memory, show_rows, torch_threads
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
# What costs by rows of the counted log; counting costs by sessions.
BY_ROWS = ("log-info", "train", "assess")


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


# The cost of each stage, by its name.
Costs: TypeAlias = dict[str, Cost]


def run() -> list[Row]:
    """Train from sessions, and from counts with one list for each query."""
    return [
        *measure(SESSIONS, tuple(KINDS), counted=False),
        *measure(SESSIONS, ("one list",), counted=True),
    ]


def measure(numbers: Sequence[int], kinds: Sequence[str], counted: bool) -> Iterator[Row]:
    """Each number of sessions, and its slope: what it takes over what the first one takes."""
    dataset = generate("web10k-like", QUERIES, seed=1)
    loggers: dict[str, Logger] = {"one list": fit_ranksvm(dataset, 0.01), "all lists distinct": UniformLogger()}
    trained: dict[str, Cost] = {}
    for kind in kinds:
        name = f"factored, {kind}, {'counted' if counted else 'sessions'}"
        first: Costs | None = None
        for sessions in numbers:
            simulation = Simulation(dataset, loggers[kind], UserBrowsingModel(), sessions, K)
            costs = _costs(simulation, KINDS[kind] if counted else None)
            yield from _rows(f"{name}, {sessions:,}", costs)
            if first is None:
                first = costs
                trained[kind] = costs["train"]
            else:
                yield from _slopes(f"{name}, {sessions / numbers[0]:g} times the sessions", first, costs)
    if len(trained) > 1:
        one, distinct = trained.values()
        ratio = distinct.seconds / distinct.documents / (one.seconds / one.documents)
        yield _ratio("factored, time per document: distinct / one list", ratio, 1)


def _costs(simulation: Simulation, counted_by: CountedBy | None) -> Costs:
    """Of training; from counts, also of counting, describing and assessing. Each in a process of its own."""
    with tempfile.TemporaryDirectory() as place:
        log, counts, model, parts = (Path(place) / name for name in ("LOG", "COUNTS", "MODEL", "PARTS"))
        if counted_by is None:
            simulate_to(log, simulation)
            return {"train": in_process(_train, log, model)}
        # Sessions that would not fit in memory together are simulated and counted in parts.
        in_process(
            write_parts, Path(place), replace(simulation, sessions=min(PART, simulation.sessions)), simulation.sessions
        )
        costs = {"count": in_process(_count, log, parts, counts, counted_by)}
        shutil.rmtree(parts)
        costs["log-info"] = in_process(_describe, counts)
        costs["train"] = in_process(_train, counts, model)
        costs["assess"] = in_process(_assess, counts, model)
        return costs


def _rows(name: str, costs: Costs) -> Iterator[Row]:
    trained = costs["train"]
    said = f"{name}, {trained.rows:,} rows, {trained.documents:,} documents"
    yield Row(f"{said}: {STEPS} steps", trained.seconds, "CPU s", "", True)
    yield Row(f"{said}: peak memory", trained.memory / 1e9, "GB", "", True)
    yield _ratio(f"{said}: peak memory beside the libraries / data", trained.per_data, 2)
    for stage, cost in costs.items():
        if stage != "train":
            yield Row(f"{name}: {stage}", cost.seconds, "CPU s", "", True)
            yield Row(f"{name}: {stage}, peak memory", cost.memory / 1e9, "GB", "", True)


def _slopes(name: str, first: Costs, last: Costs) -> Iterator[Row]:
    """Time and memory over those of the first number of sessions."""
    for stage, cost in last.items():
        time_ratio, memory_ratio = cost.seconds / first[stage].seconds, cost.memory / first[stage].memory
        if stage in BY_ROWS:
            yield _ratio(f"{name}: {stage}, time", time_ratio, 1.5)
            yield _ratio(f"{name}: {stage}, peak memory", memory_ratio, 1.5)
        else:
            yield Row(f"{name}: {stage}, time", time_ratio, "×", "", True)
            yield Row(f"{name}: {stage}, peak memory", memory_ratio, "×", "", True)


def _ratio(name: str, ratio: float, most: float) -> Row:
    return Row(name, ratio, "×", f"≤ {most:g}", ratio <= most)


def _count(folder: Path, parts: Path, counts: Path, by: CountedBy) -> Cost:
    libraries, start = peak_memory(), time.process_time()
    counted = count_parts(folder, [parts], counts, by)
    return _cost(counted, libraries, start)


def _describe(folder: Path) -> Cost:
    from cuolr.examination.diagnosis import diagnose
    from cuolr.logs.log_folder import load_click_log

    libraries, start = peak_memory(), time.process_time()
    diagnose(folder)
    seconds, memory = time.process_time() - start, peak_memory()
    return replace(
        _cost(load_click_log(folder, ids=False, documents=True), libraries, start), seconds=seconds, memory=memory
    )


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
    parser.add_argument(
        "--counted", action="store_true", help="count the sessions; log-info, train and assess on counts"
    )
    options = parser.parse_args()
    rows = as_measured(measure(options.sessions, options.kind or list(KINDS), options.counted))
    show_rows("training", rows)


if __name__ == "__main__":
    main()
