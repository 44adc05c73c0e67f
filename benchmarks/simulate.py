"""Simulating click logs to disk: sessions per second, compared with loops over sessions, and memory."""

import multiprocessing
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.table import Row, peak_memory
from cuolr.clicks.click_model import CLICK_MODELS, ClickModel, relevance_of
from cuolr.clicks.simulate import Simulation, simulate, simulate_to
from cuolr.policies.random_policy import RandomPolicy
from cuolr.types import Bools, Candidates, Floats, Ints, RankingDataset
from tests.clicks.one_session import one_session

MODELS = ("pbm", "cascade", "dcm", "ccm", "ubm")
QUERIES, DOCUMENTS, K = 2_000, 120, 10
SESSIONS, LOOP_SESSIONS, MANY_SESSIONS = 2_000_000, 20_000, 10_000_000
# The best of several runs counts, because the machine may be busy.
REPEAT = 3


def run() -> list[Row]:
    """Measure every click model of the paper."""
    dataset = _dataset()
    with tempfile.TemporaryDirectory() as folder:
        rows = [row for name in MODELS for row in _speed(name, dataset, Path(folder))]
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for what, measure in (("to disk", _memory_to_disk), ("in memory", _memory_in_memory)):
            gigabytes = pool.apply(measure) / 1e9
            rows.append(Row(f"simulate 10 million {what}: peak memory", gigabytes, "GB", "≤ 2", gigabytes <= 2))
    return rows


def _speed(name: str, dataset: RankingDataset, folder: Path) -> list[Row]:
    model, policy = CLICK_MODELS.get(name)(), RandomPolicy()
    simulation = Simulation(dataset, policy, model, SESSIONS, K)
    ranking = policy.rank(dataset.candidates, K)
    rows = dataset.candidates.offsets[:-1, None] + ranking
    relevance = relevance_of(dataset.relevance[rows], dataset.max_grade)
    seconds = _best(lambda: simulate_to(folder / "log", simulation, overwrite=True)) / SESSIONS
    by_session = _best(lambda: _loop(model, ranking, relevance, folder / "loop.parquet")) / LOOP_SESSIONS
    by_document = _best(lambda: _plain_loop(name, model, ranking, relevance, folder / "loop.parquet")) / LOOP_SESSIONS
    rows_of_loops = [
        Row(f"simulate {name}: speed over {loop}", slower / seconds, "×", "≥ 50", slower / seconds >= 50)
        for loop, slower in (("a loop over sessions with NumPy", by_session), ("a loop in plain Python", by_document))
    ]
    return [Row(f"simulate {name}", 1 / seconds / 1e6, "million/s", "≥ 1", seconds <= 1e-6), *rows_of_loops]


def _loop(model: ClickModel, ranking: Ints, relevance: Floats, file: Path) -> None:
    """A loop over sessions, each by the click model's own `sample`, written to the same columns."""
    rng = np.random.default_rng(0)
    where: Bools = np.ones((1, K), np.bool_)
    queries, rankings, clicks = [], [], []
    for _ in range(LOOP_SESSIONS):
        query = int(rng.integers(QUERIES))
        queries.append(query)
        rankings.append(ranking[query])
        clicks.append(model.sample(relevance[query : query + 1], where, rng)[0][0])
    _write(queries, rankings, clicks, file)


def _plain_loop(name: str, model: ClickModel, ranking: Ints, relevance: Floats, file: Path) -> None:
    """A loop over sessions and documents without NumPy, written to the same columns."""
    rankings_by_query, relevance_by_query = ranking.tolist(), relevance.tolist()
    rng = random.Random(0)
    queries, rankings, clicks = [], [], []
    for _ in range(LOOP_SESSIONS):
        query = rng.randrange(QUERIES)
        uniforms = [(rng.random(), rng.random()) for _ in range(K)]
        queries.append(query)
        rankings.append(rankings_by_query[query])
        clicks.append(one_session(name, model, relevance_by_query[query], uniforms)[0])
    _write(queries, rankings, clicks, file)


def _write(queries: list[int], rankings: list[Any], clicks: list[Any], file: Path) -> None:
    columns = {"query": (queries, np.int32), "ranking": (rankings, np.int16), "clicks": (clicks, np.uint8)}
    table = pl.DataFrame({name: np.array(values, dtype) for name, (values, dtype) in columns.items()})
    table.write_parquet(file, compression="zstd", compression_level=1, statistics=False)


def _best(call: Callable[[], None]) -> float:
    """The shortest time of several runs, in seconds."""
    seconds = []
    for _ in range(REPEAT):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def _memory_to_disk() -> int:
    with tempfile.TemporaryDirectory() as folder:
        model = CLICK_MODELS.get("pbm")()
        simulate_to(Path(folder) / "log", Simulation(_dataset(), RandomPolicy(), model, MANY_SESSIONS, K))
    return peak_memory()


def _memory_in_memory() -> int:
    simulate(_dataset(), RandomPolicy(), CLICK_MODELS.get("pbm")(), MANY_SESSIONS, K)
    return peak_memory()


def _dataset() -> RankingDataset:
    """Queries of many documents; the features do not matter here."""
    rng = np.random.default_rng(0)
    candidates = Candidates(
        features=rng.random((QUERIES * DOCUMENTS, 4), np.float32),
        offsets=np.arange(QUERIES + 1) * DOCUMENTS,
        query_ids=np.arange(QUERIES).astype(np.str_),
    )
    return RankingDataset(candidates, rng.integers(0, 5, candidates.n_documents).astype(np.int8), 4)
