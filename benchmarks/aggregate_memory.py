"""Memory of large logs: aggregating 20 million sessions."""

import multiprocessing
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.table import Row, peak_memory
from cuolr.clicks.pbm import PositionBasedModel
from cuolr.clicks.simulate import Simulation, simulate_to
from cuolr.logs.aggregate import aggregate_folder
from cuolr.policies.plackett_luce import StochasticLogger
from cuolr.policies.random_policy import RandomPolicy
from cuolr.types import Candidates, RankingDataset

QUERIES, DOCUMENTS, K = 10_000, 30, 10
ROWS = 20_000_000


def run() -> list[Row]:
    """Measure each job in its own process."""
    with tempfile.TemporaryDirectory() as name:
        log, stochastic = (Path(name) / what for what in ("log", "stochastic"))
        model, moved = PositionBasedModel(), StochasticLogger(RandomPolicy(), temperature=0.01)
        simulate_to(log, Simulation(_dataset(), RandomPolicy(), model, ROWS, K))
        simulate_to(stochastic, Simulation(_dataset(), moved, model, ROWS // 10, K))
        return [
            _measure("aggregate 20 million sessions", _aggregate, log),
            _measure("aggregate 2 million sessions of a stochastic logger", _aggregate, stochastic),
        ]


def _measure(name: str, job: Callable[[Path], tuple[int, int]], path: Path) -> Row:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        rows, peak = pool.apply(job, (path,))
    return Row(f"{name} to {rows:,} rows: peak memory", peak / 1e9, "GB", "≤ 2", peak <= 2e9)


def _aggregate(folder: Path) -> tuple[int, int]:
    return len(aggregate_folder(folder)), peak_memory()


def _dataset() -> RankingDataset:
    rng = np.random.default_rng(0)
    n_documents = QUERIES * DOCUMENTS
    candidates = Candidates(
        features=rng.random((n_documents, 4), np.float32),
        offsets=np.arange(QUERIES + 1) * DOCUMENTS,
        query_ids=np.array([f"q{query}" for query in range(QUERIES)]),
        document_ids=np.array([f"d{row}" for row in range(n_documents)]),
    )
    return RankingDataset(candidates, rng.integers(0, 5, n_documents).astype(np.int8), 4)
