"""A log over more documents than memory holds: counted, described, trained on and assessed in little memory.

Features stay in a file that is mapped into memory; what has to fit is what the log shows. `python -m
benchmarks.mapped_features --documents 10000000 --limit 4` takes 5.4 GB of features, and ends with an error where a
process needs more than 4 GB beside files. All that is written is deleted afterwards.
"""

import argparse
import re
import resource
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.table import Row, as_measured, in_process, peak_memory, show_rows, torch_threads
from cuolr.clicks.simulate import Simulation
from cuolr.clicks.ubm import UserBrowsingModel
from cuolr.data.synthetic import World
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.log_folder import write_click_log
from cuolr.supervised.ranksvm import fit_ranksvm
from cuolr.types import Candidates, Ints, RankingDataset

PRESET, SEED, K = "web10k-like", 1, 10
# Each query has one list of 10 documents, in so many sessions.
SESSIONS_PER_QUERY, STEPS = 10, 50
QUERIES_AT_A_TIME = 500
# Documents, and gigabytes of memory, unless others are given.
DOCUMENTS, LIMIT = 100_000, 4.0
SECONDS_BETWEEN_SAMPLES = 0.05


@dataclass(frozen=True)
class Cost:
    """What a process took.

    Attributes:
        seconds: Wall-clock seconds.
        cpu_seconds: CPU seconds.
        memory: Peak memory in bytes that is no page of a file, so that the system cannot take it back.
        with_files: Peak memory in bytes, with pages of files that happen to be in memory.
    """

    seconds: float
    cpu_seconds: float
    memory: int
    with_files: int


def run() -> list[Row]:
    """A small number of documents."""
    return list(measure(DOCUMENTS, LIMIT))


def measure(documents: int, limit: float, steps: int = STEPS) -> Iterator[Row]:
    """Each stage in a process of its own that can have so many gigabytes."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        features = in_process(write_log, place / "LOG", documents) / 1e9
        yield Row(f"{documents:,} documents: features", features, "GB", "", True)
        stages: dict[str, Callable[[Path, int], None]] = {
            "count": _count,
            "log-info": _describe,
            "train": _train,
            "assess": _assess,
        }
        for stage, job in stages.items():
            cost: Cost = in_process(_limited, job, place, steps, limit)
            of = f"{documents:,} documents: {stage}"
            yield Row(f"{of}, wall clock", cost.seconds, "s", "", True)
            yield Row(f"{of}, CPU", cost.cpu_seconds, "CPU s", "", True)
            memory = cost.memory / 1e9
            yield Row(f"{of}, peak memory beside files", memory, "GB", f"≤ {limit:g}", memory <= limit)
            yield Row(f"{of}, peak memory with files", cost.with_files / 1e9, "GB", "", True)


def write_log(folder: Path, documents: int) -> int:
    """A log that shows one list for each query, some queries in memory at a time; returns the bytes of its features."""
    world = World(PRESET, SEED)
    sizes = world.draw_sizes(documents // 50 + 2, np.random.default_rng([SEED, 0]))
    sizes = sizes[: max(1, int(np.searchsorted(np.cumsum(sizes), documents, side="right")))]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    file = folder.parent / "features.npy"
    written = np.lib.format.open_memmap(
        file, mode="w+", dtype=np.float32, shape=(int(offsets[-1]), world.preset.features)
    )
    blocks: list[tuple[int, ClickLog]] = []
    policy = None
    for first in range(0, len(sizes), QUERIES_AT_A_TIME):
        of_block = sizes[first : first + QUERIES_AT_A_TIME]
        dataset = _dataset(world, of_block, first)
        written[offsets[first] : offsets[first + len(of_block)]] = dataset.candidates.features
        policy = policy or fit_ranksvm(dataset, 0.05)
        sessions = SESSIONS_PER_QUERY * len(of_block)
        simulation = Simulation(dataset, policy, UserBrowsingModel(), sessions, K, seed=1 + first)
        blocks.append((first, simulation.log()))
    written.flush()
    del written
    mapped = np.load(file, mmap_mode="r")
    candidates = Candidates(mapped, offsets, np.arange(len(sizes)).astype(np.str_))
    chunks = (replace(log, candidates=candidates, query=(log.query + first).astype(np.int32)) for first, log in blocks)
    write_click_log(folder, chunks)
    file.unlink()
    return int(mapped.nbytes)


def _dataset(world: World, sizes: Ints, first: int) -> RankingDataset:
    """Queries of these numbers of documents."""
    features, relevance = world.draw_documents(sizes, np.random.default_rng([SEED, 1, first]))
    candidates = Candidates(features, np.concatenate([[0], np.cumsum(sizes)]), np.arange(len(sizes)).astype(np.str_))
    return RankingDataset(candidates, relevance.astype(np.int8), len(world.preset.grades) - 1)


def _limited(job: Callable[[Path, int], None], place: Path, steps: int, limit: float) -> Cost:
    """Run in a process of its own; it ends with a MemoryError if it needs more."""
    most = int(limit * 1e9)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    start, cpu_start = time.perf_counter(), time.process_time()
    with torch_threads(1), _peak_beside_files() as peak:
        job(place, steps)
    return Cost(time.perf_counter() - start, time.process_time() - cpu_start, peak[0], peak_memory())


def _count(place: Path, steps: int) -> None:
    from cuolr.logs.counting import count_log

    count_log(place / "LOG", place / "COUNTS")


def _describe(place: Path, steps: int) -> None:
    """What `cuolr log-info` reads."""
    from cuolr.data.candidate_store import load_candidates
    from cuolr.data.statistics import describe_features
    from cuolr.examination.diagnosis import diagnose

    diagnose(place / "COUNTS")
    describe_features(load_candidates(place / "COUNTS"))


def _train(place: Path, steps: int) -> None:
    from cuolr.estimator import Ranker
    from cuolr.logs.log_folder import load_click_log

    log = load_click_log(place / "COUNTS", ids=False)
    Ranker(steps=steps, settings={"learner.threads": 1}).fit(log).save(place / "MODEL")


def _assess(place: Path, steps: int) -> None:
    from cuolr.logs.log_folder import load_click_log
    from cuolr.off_policy.assess import assess
    from cuolr.policies.model_folder import load_policy

    assess(load_policy(place / "MODEL"), load_click_log(place / "COUNTS", ids=False))


@contextmanager
def _peak_beside_files() -> Iterator[list[int]]:
    """The most bytes of this process that are no pages of files, sampled (Linux)."""
    peak, ended = [0], threading.Event()

    def watch() -> None:
        while not ended.wait(SECONDS_BETWEEN_SAMPLES):
            match = re.search(r"RssAnon:\s+(\d+) kB", Path("/proc/self/status").read_text())
            assert match is not None
            peak[0] = max(peak[0], int(match[1]) * 1024)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield peak
    finally:
        ended.set()
        watcher.join()


def main() -> None:
    """Measure as asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=DOCUMENTS)
    parser.add_argument("--limit", type=float, default=LIMIT, help="gigabytes that a process can have beside files")
    parser.add_argument("--steps", type=int, default=STEPS)
    options = parser.parse_args()
    show_rows("mapped features", as_measured(measure(options.documents, options.limit, options.steps)))


if __name__ == "__main__":
    main()
