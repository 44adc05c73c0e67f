"""What it costs to compare a log and a model with their hashes: CPU time of reading with and without."""

import gc
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import numpy as np

from benchmarks.table import Row
from cuolr import files
from cuolr.clicks.pbm import PositionBasedModel
from cuolr.clicks.simulate import Simulation, simulate_to
from cuolr.data.normalise import Normaliser
from cuolr.data.synthetic import generate
from cuolr.logs.log_folder import load_click_log
from cuolr.policies.linear_policy import LinearPolicy
from cuolr.policies.model_folder import load_policy, save_policy
from cuolr.policies.random_policy import RandomPolicy

QUERIES, SESSIONS, REPEATS = 300, 300_000, 5


def run() -> list[Row]:
    """Read a log and a model."""
    dataset = generate("web10k-like", QUERIES, seed=1)
    with tempfile.TemporaryDirectory() as place:
        log, model = Path(place) / "log", Path(place) / "model"
        simulate_to(log, Simulation(dataset, RandomPolicy(), PositionBasedModel(), SESSIONS))
        normaliser = Normaliser.fit("log-min-max", dataset.candidates)
        save_policy(LinearPolicy(np.ones(dataset.candidates.n_features, np.float32), normaliser), model)
        return [*_rows("a log", log, lambda: load_click_log(log)), *_rows("a model", model, lambda: load_policy(model))]


def _rows(what: str, folder: Path, read: Callable[[], object]) -> list[Row]:
    size = sum(file.stat().st_size for file in folder.iterdir())
    without, compared = _seconds(read, verified=False), _seconds(read, verified=True)
    said = f"hashes of {what} of {size / 1e6:.1f} MB"
    return [
        Row(f"{said}: reading, without", 1000 * without, "CPU ms", "", True),
        Row(f"{said}: reading, with", 1000 * compared, "CPU ms", "", True),
        Row(f"{said}: with over without", compared / without, "×", "≤ 2", compared <= 2 * without),
    ]


def _seconds(read: Callable[[], object], verified: bool) -> float:
    """The shortest of some times; each compares anew."""
    taken = []
    for _ in range(REPEATS):
        files._verified.clear()  # a process compares a file once
        gc.collect()
        start = time.process_time()
        with nullcontext() if verified else files.unverified():
            read()
        taken.append(time.process_time() - start)
    return min(taken)
