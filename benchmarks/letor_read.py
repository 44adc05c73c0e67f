"""Reading LETOR text, compared with scikit-learn's reader, bit for bit, and with the cache."""

import gc
import multiprocessing
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_svmlight_file

from benchmarks.table import Row, peak_memory
from cuolr.data.letor.cache import Cache
from cuolr.data.letor.reader import read_letor

ROWS, FEATURES = 300_000, 136
VARIANTS = {"plain": ("", "\n"), "# docid": (" #docid = GX{0:03d}-{0:02d}-{0}", "\n"), "space + CRLF": (" ", "\r\n")}


def run() -> list[Row]:
    """Measure every variant."""
    with tempfile.TemporaryDirectory() as folder:
        return [row for name in VARIANTS for row in _measure(Path(folder), name)]


def _measure(folder: Path, name: str) -> list[Row]:
    path = folder / "data.txt"
    _write(path, *VARIANTS[name])
    size = path.stat().st_size
    (features, _), peer_seconds = _timed(lambda: load_svmlight_file(str(path), dtype=np.float32))
    dataset, seconds = _timed(lambda: read_letor(path), repeat=2)
    if dataset.candidates.features.tobytes() != features.toarray().tobytes():
        raise AssertionError(f"{name}: the values differ from scikit-learn's")
    del dataset, features
    gc.collect()
    goal = 5 if name == "plain" else 3
    rows = [
        Row(
            f"letor_read {name}: speed over load_svmlight_file",
            peer_seconds / seconds,
            "×",
            f"≥ {goal}",
            peer_seconds / seconds >= goal,
        ),
        Row(f"letor_read {name}: speed", size / 1e6 / seconds, "MB/s", "", True),
    ]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        peak = pool.apply(_peak_memory_of_reading, (path,)) / size
    rows.append(Row(f"letor_read {name}: peak memory over the file's size", peak, "×", "≤ 3", peak <= 3))
    if name == "plain":
        cache = Cache(folder / "cache")
        _, first = _timed(lambda: cache.read(path))
        _, again = _timed(lambda: cache.read(path), repeat=5)
        rows.append(
            Row("letor_read: first read over a read from the cache", first / again, "×", "≥ 50", first / again >= 50)
        )
    return rows


def _write(path: Path, comment: str, end: str) -> None:
    """Raw features of many scales, as in MSLR: whole numbers, fractions and negative numbers."""
    rng = np.random.default_rng(1)
    with path.open("w", newline="") as file:
        for start in range(0, ROWS, 10_000):
            counts = rng.integers(0, 1_000, (10_000, FEATURES // 2)).tolist()
            scores = (rng.standard_normal((10_000, FEATURES - FEATURES // 2)) * 10).round(6).tolist()
            for i in range(10_000):
                values = counts[i] + scores[i]
                fields = " ".join(f"{j}:{value}" for j, value in enumerate(values, start=1))
                row = start + i
                file.write(f"{row % 5} qid:{row // 120} {fields}{comment.format(row)}{end}")


def _timed(call: Callable[[], Any], repeat: int = 1) -> tuple[Any, float]:
    """The result, and the shortest time of several runs."""
    seconds = []
    for _ in range(repeat):
        gc.collect()
        start = time.perf_counter()
        result = call()
        seconds.append(time.perf_counter() - start)
    return result, min(seconds)


def _peak_memory_of_reading(path: Path) -> int:
    """Peak memory in bytes that reading adds to a fresh process."""
    before = peak_memory()
    read_letor(path)
    return peak_memory() - before
