"""Counting Parquet parts and training the default learner on a local Ray cluster of one worker and of two.

A worker is a node whose processes run on one core; the process of the command is on the first. Wall-clock time says how
much a second worker helps, on a machine that does nothing else; CPU seconds say how much work was done. The results are
compared and must be equal.
"""

import argparse
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.count_parts import PART, QUERIES, K, write_parts
from benchmarks.table import Row, as_measured, show_rows
from cuolr.clicks.simulate import Simulation, simulate_to
from cuolr.clicks.ubm import UserBrowsingModel
from cuolr.data.synthetic import generate
from cuolr.logs.count_parts import count_parts
from cuolr.logs.counting import count_log
from cuolr.policies.random_policy import UniformLogger
from cuolr.supervised.ranksvm import fit_ranksvm
from cuolr.training.fit import FitRequest, fit
from cuolr.training.log_form import TrainingLog
from cuolr.training.presets.configure import configure

WORKERS = (1, 2)
JOBS = ("count", "train")
# Memory of a node for what Ray sends, in bytes: the rankers with their features.
OBJECT_STORE = 2 * 1024**3
SECONDS_BETWEEN_SAMPLES = 0.2


@dataclass(frozen=True)
class Size:
    """The size of the jobs.

    Attributes:
        parts: Number of parts that are counted.
        part: Sessions of each, with one list for each query.
        sessions: Sessions that are trained on, all with distinct lists, counted by document.
        steps: Training steps.
    """

    parts: int = 20
    part: int = PART
    sessions: int = 200_000
    steps: int = 30


@dataclass(frozen=True)
class Cost:
    """What a job took: wall-clock seconds, CPU seconds of all processes, and the arrays that it made."""

    seconds: float
    cpu_seconds: float
    result: dict[str, Any]


def run() -> list[Row]:
    """Count and train with each number of workers."""
    return list(measure(Size(), JOBS))


def measure(size: Size, jobs: Sequence[str]) -> Iterator[Row]:
    """These jobs at that size."""
    dataset = generate("web10k-like", QUERIES, seed=1)
    simulation = Simulation(dataset, fit_ranksvm(dataset, 0.01), UserBrowsingModel(), size.part, K)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        if "count" in jobs:
            write_parts(place, simulation, size.parts * size.part)
            yield from _compare(f"count {size.parts} parts of {size.part:,} sessions", partial(_count, place))
        if "train" in jobs:
            simulate_to(place / "DISTINCT", replace(simulation, policy=UniformLogger(), sessions=size.sessions))
            count_log(place / "DISTINCT", place / "COUNTS", by="document")
            train = partial(_train, place / "COUNTS", size.steps)
            yield from _compare(f"train {size.steps} steps on {size.sessions:,} distinct lists", train)


def _compare(name: str, job: Callable[[str], dict[str, Any]]) -> Iterator[Row]:
    costs: list[Cost] = []
    for workers in WORKERS:
        costs.append(cost := _cost(job, workers))
        of = f"{name}, {workers} worker{'s' * (workers > 1)}"
        yield Row(f"{of}: wall clock", cost.seconds, "s", "", True)
        yield Row(f"{of}: all processes", cost.cpu_seconds, "CPU s", "", True)
    one, two = costs
    speed = one.seconds / two.seconds
    equal = one.result.keys() == two.result.keys() and all(
        # Not a number = itself: examination has no value in cells that cannot occur.
        np.array_equal(values, two.result[each], equal_nan=values.dtype.kind == "f")
        for each, values in one.result.items()
    )
    yield Row(f"{name}: speed of two workers over one", speed, "×", "≥ 1.6", speed >= 1.6)
    yield Row(f"{name}: results of two workers and of one are equal", float(equal), "", "1", equal)


def _cost(job: Callable[[str], dict[str, Any]], workers: int) -> Cost:
    with _cluster(workers) as address, _cpu_seconds() as used:
        start = time.perf_counter()
        result = job(address)
        seconds = time.perf_counter() - start
    return Cost(seconds, used[0], result)


def _count(place: Path, address: str) -> dict[str, Any]:
    counted = count_parts(place / "LOG", [place / "PARTS"], place / "OUT", "list", address, overwrite=True)
    return dict(counted.columns)


def _train(counts: Path, steps: int, address: str) -> dict[str, Any]:
    # With the last policy kept, training never stops early: the steps are those that were asked for.
    settings = {"training.steps": steps, "training.keep": "last", "learner.threads": 1}
    config = configure("factored", "default", settings)
    result = fit(FitRequest(TrainingLog.of_folder(counts), config, ray=address))
    assert result.best is not None
    return dict(result.best.policy.arrays())


@contextmanager
def _cluster(workers: int) -> Iterator[str]:
    """The address of a cluster of nodes on one core each; this process is on the first node's."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from ray.cluster_utils import Cluster

    cores = os.sched_getaffinity(0)
    first, *others = sorted(cores)[:workers]
    os.sched_setaffinity(0, {first})  # what is started has the cores of the thread that starts it
    node = {"num_cpus": 1, "object_store_memory": OBJECT_STORE}
    nodes = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    try:
        for core in others:
            os.sched_setaffinity(0, {core})
            nodes.add_node(**node)
        os.sched_setaffinity(0, {first})
        yield nodes.address
    finally:
        nodes.shutdown()
        os.sched_setaffinity(0, cores)


@contextmanager
def _cpu_seconds() -> Iterator[list[float]]:
    """The CPU seconds of this process and of all that it started, those that end meanwhile up to their last sample."""
    last: dict[int, float] = {}
    first: dict[int, float] = {}
    used, ended = [0.0], threading.Event()

    def sample() -> None:
        found = _descendants()
        last.update(found)
        for pid in found:
            first.setdefault(pid, 0.0)

    def watch() -> None:
        while not ended.wait(SECONDS_BETWEEN_SAMPLES):
            sample()

    first.update(_descendants())
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield used
    finally:
        ended.set()
        watcher.join()
        sample()
        used[0] = sum(seconds - first[pid] for pid, seconds in last.items())


def _descendants() -> dict[int, float]:
    """The CPU seconds of this process and its descendants, by process id (Linux)."""
    parent: dict[int, int] = {}
    seconds: dict[int, float] = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = file.read_text()
        except OSError:
            continue  # it has ended
        fields = text.rpartition(")")[2].split()
        pid = int(file.parent.name)
        parent[pid] = int(fields[1])
        seconds[pid] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    own = {os.getpid()}
    while more := {pid for pid, above in parent.items() if above in own} - own:
        own |= more
    return {pid: seconds[pid] for pid in own if pid in seconds}


def main() -> None:
    """Measure as asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--job", choices=JOBS, action="append")
    for name, default in asdict(Size()).items():
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    size = Size(options.parts, options.part, options.sessions, options.steps)
    show_rows("one worker and two", as_measured(measure(size, options.job or JOBS)))


if __name__ == "__main__":
    main()
