"""Counting Parquet parts and training the default learner on a local Ray cluster of one worker and of two.

A worker is a node whose processes run on one core; the process of the command is on the first. Wall-clock time says how
much a second worker helps, on a machine that does nothing else; CPU seconds say how much work was done. The results are
compared and must be equal.
"""

import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.count_parts import PART, QUERIES, K, write_parts
from benchmarks.table import Row
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
# Sessions with one list for each query are counted, those with distinct lists are trained on.
PARTS, SESSIONS, STEPS = 20, 200_000, 30
# Memory of a node for what Ray sends, in bytes: the rankers with their features.
OBJECT_STORE = 2 * 1024**3
SECONDS_BETWEEN_SAMPLES = 0.2


@dataclass(frozen=True)
class Cost:
    """What a job took: wall-clock seconds, CPU seconds of all processes, and the arrays that it made."""

    seconds: float
    cpu_seconds: float
    result: dict[str, Any]


def run() -> list[Row]:
    """Count and train with each number of workers."""
    dataset = generate("web10k-like", QUERIES, seed=1)
    simulation = Simulation(dataset, fit_ranksvm(dataset, 0.01), UserBrowsingModel(), PART, K)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        write_parts(place, simulation, PARTS * PART)
        simulate_to(place / "DISTINCT", replace(simulation, policy=UniformLogger(), sessions=SESSIONS))
        count_log(place / "DISTINCT", place / "COUNTS", by="document")
        jobs: dict[str, Callable[[str], dict[str, Any]]] = {
            f"count {PARTS} parts of {PART:,} sessions": partial(_count, place),
            f"train {STEPS} steps on {SESSIONS:,} distinct lists": partial(_train, place / "COUNTS"),
        }
        return [row for name, job in jobs.items() for row in _compare(name, job)]


def _compare(name: str, job: Callable[[str], dict[str, Any]]) -> list[Row]:
    rows: list[Row] = []
    costs = [_cost(job, workers) for workers in WORKERS]
    for workers, cost in zip(WORKERS, costs, strict=True):
        of = f"{name}, {workers} worker{'s' * (workers > 1)}"
        rows.append(Row(f"{of}: wall clock", cost.seconds, "s", "", True))
        rows.append(Row(f"{of}: all processes", cost.cpu_seconds, "CPU s", "", True))
    one, two = costs
    speed = one.seconds / two.seconds
    equal = one.result.keys() == two.result.keys() and all(
        # Not a number = itself: examination has no value in cells that cannot occur.
        np.array_equal(values, two.result[each], equal_nan=values.dtype.kind == "f")
        for each, values in one.result.items()
    )
    return [
        *rows,
        Row(f"{name}: speed of two workers over one", speed, "×", "≥ 1.6", speed >= 1.6),
        Row(f"{name}: results of two workers and of one are equal", float(equal), "", "1", equal),
    ]


def _cost(job: Callable[[str], dict[str, Any]], workers: int) -> Cost:
    with _cluster(workers) as address, _cpu_seconds() as used:
        start = time.perf_counter()
        result = job(address)
        seconds = time.perf_counter() - start
    return Cost(seconds, used[0], result)


def _count(place: Path, address: str) -> dict[str, Any]:
    counted = count_parts(place / "LOG", [place / "PARTS"], place / "OUT", "list", address, overwrite=True)
    return dict(counted.columns)


def _train(counts: Path, address: str) -> dict[str, Any]:
    config = configure("factored", "default", {"training.steps": STEPS, "learner.threads": 1})
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
