"""Import of a large log: 100 million rows of Parquet in 20 files, in memory and beside polars' reading alone."""

import multiprocessing
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.table import Row, peak_memory
from cuolr.logs.importing.table import read_log_table
from cuolr.logs.log_folder import save_click_log
from cuolr.types import Candidates

FILES, SESSIONS_PER_FILE, K = 20, 500_000, 10
QUERIES, DOCUMENTS = 10_000, 30
MAX_MEMORY = 3e9


def run() -> list[Row]:
    """Measure each job in its own process."""
    with tempfile.TemporaryDirectory() as name:
        for day in range(FILES):
            _in_own_process(_write_day, Path(name), day)
        alone, _ = _in_own_process(_read_alone, Path(name))
        seconds, peak = _in_own_process(_import, Path(name))
    rows = FILES * SESSIONS_PER_FILE * K
    what = f"import {rows / 1e6:.0f} million rows in {FILES} files"
    return [
        Row(f"{what}: peak memory", peak / 1e9, "GB", f"≤ {MAX_MEMORY / 1e9:.0f}", peak <= MAX_MEMORY),
        Row(f"{what}: rows per second", rows / seconds, "", "", True),
        Row("polars reading these columns alone: rows per second", rows / alone, "", "", True),
        Row(f"{what}: time / polars reading alone", seconds / alone, "×", "", True),
    ]


def _in_own_process(job: Callable[..., Any], *arguments: Any) -> Any:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(job, arguments)


def _write_day(folder: Path, day: int) -> None:
    """A day's rows; session ids are in no order."""
    rng = np.random.default_rng(day)
    numbers = rng.integers(0, 2**63, SESSIONS_PER_FILE)
    query = rng.integers(0, QUERIES, SESSIONS_PER_FILE)
    ranking = np.argsort(rng.random((SESSIONS_PER_FILE, DOCUMENTS), np.float32), axis=1)[:, :K]
    rows = pl.DataFrame(
        {
            "query": np.repeat(query, K),
            "session": np.repeat(numbers, K),
            "position": np.tile(np.arange(1, K + 1), SESSIONS_PER_FILE),
            "document": ranking.ravel(),
            "click": (rng.random(ranking.size) < 0.1).astype(np.int8),
        }
    )
    rows.select(
        query_id=pl.format("q{}", "query"),
        session_id=pl.format("{}-{}", pl.lit(day), "session"),
        position="position",
        doc_id=pl.format("d{}", pl.col("query") * DOCUMENTS + pl.col("document")),
        click="click",
    ).write_parquet(folder / f"day-{day:02}.parquet")


def _read_alone(folder: Path) -> tuple[float, int]:
    """Read each value once: their hashes are added up."""
    start = time.perf_counter()
    pl.scan_parquet(folder / "*.parquet").select(pl.all().hash().sum()).collect(engine="streaming")
    return time.perf_counter() - start, peak_memory()


def _import(folder: Path) -> tuple[float, int]:
    """Check and repair all rows, and write the log, as `cuolr import-log` does."""
    candidates = Candidates(
        features=np.zeros((QUERIES * DOCUMENTS, 4), np.float32),
        offsets=np.arange(QUERIES + 1) * DOCUMENTS,
        query_ids=np.array([f"q{query}" for query in range(QUERIES)]),
        document_ids=np.array([f"d{row}" for row in range(QUERIES * DOCUMENTS)]),
    )
    start = time.perf_counter()
    log, report = read_log_table(str(folder / "*.parquet"), candidates)
    save_click_log(log, folder / "LOG")
    seconds = time.perf_counter() - start
    assert report.read.impressions == report.kept.impressions == FILES * SESSIONS_PER_FILE * K
    return seconds, peak_memory()
