"""Counting Parquet parts by list and by document, beside polars reading and grouping the same columns alone.

`python -m benchmarks.count_parts --sessions 100000000` simulates as many, in parts, and deletes them afterwards.
"""

import argparse
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import polars as pl

from benchmarks.table import Row, as_measured, in_process, peak_memory, show_rows
from cuolr.clicks.simulate import Simulation, simulate_to
from cuolr.clicks.ubm import UserBrowsingModel
from cuolr.data.synthetic import generate
from cuolr.logs.count_parts import count_parts
from cuolr.logs.counting import CountedBy
from cuolr.logs.log_folder import SESSIONS_FILE
from cuolr.policies.policy import RankingPolicy
from cuolr.policies.random_policy import UniformLogger
from cuolr.supervised.ranksvm import fit_ranksvm

Logger: TypeAlias = RankingPolicy | UniformLogger

QUERIES, K = 1_000, 10
# Sessions of a part, and by default of all.
PART, SESSIONS = 500_000, 1_000_000
KEYS = ("query", "ranking", "clicks")


@dataclass(frozen=True)
class Cost:
    """What a process took: CPU seconds and peak memory in bytes; and the number of rows it made."""

    seconds: float
    memory: int
    rows: int


KINDS = ("one list", "all lists distinct")


def run() -> list[Row]:
    """Simulate and count with each kind of logging policy."""
    return list(measure(SESSIONS, KINDS))


def measure(sessions: int, kinds: Sequence[str]) -> Iterator[Row]:
    """So many sessions of each kind."""
    dataset = generate("web10k-like", QUERIES, seed=1)
    policy = fit_ranksvm(dataset, 0.01)
    # Lists that are drawn uniformly have the most rows by document, and are drawn fast.
    loggers: dict[str, Logger] = {"one list": policy, "all lists distinct": UniformLogger()}
    for kind in kinds:
        simulation = Simulation(dataset, loggers[kind], UserBrowsingModel(), min(PART, sessions), K)
        with tempfile.TemporaryDirectory() as place:
            write_parts(Path(place), simulation, sessions)
            by: tuple[CountedBy, ...] = ("list", "document") if kind == "one list" else ("document",)
            for each in by:
                yield from _compare(f"{sessions:,} sessions, {kind}, by {each}", Path(place), each)


def write_parts(place: Path, simulation: Simulation, sessions: int) -> None:
    """A log `LOG` with the first part, and all parts in `PARTS`."""
    (place / "PARTS").mkdir()
    for number in range(-(-sessions // simulation.sessions)):
        folder = place / ("LOG" if number == 0 else "NEXT")
        simulate_to(folder, replace(simulation, seed=1 + number))
        part = place / "PARTS" / f"part-{number:05}.parquet"
        if number == 0:
            shutil.copy(folder / SESSIONS_FILE, part)
        else:
            (folder / SESSIONS_FILE).rename(part)
            shutil.rmtree(folder)


def _compare(name: str, place: Path, by: CountedBy) -> list[Row]:
    alone, counted = (in_process(job, place, by) for job in (_polars, _count))
    ratio = counted.seconds / alone.seconds
    limit = 3e9
    return [
        Row(f"count {name} to {counted.rows:,} rows", counted.seconds, "CPU s", "", True),
        Row(f"count {name}: time / polars reading and grouping", ratio, "×", "≤ 2", ratio <= 2),
        Row(f"count {name}: peak memory", counted.memory / 1e9, "GB", "≤ 3", counted.memory <= limit),
    ]


def _count(place: Path, by: CountedBy) -> Cost:
    start = time.process_time()
    counted = count_parts(place / "LOG", [place / "PARTS"], place / f"BY {by}", by)
    return Cost(time.process_time() - start, peak_memory(), len(counted))


def _polars(place: Path, by: CountedBy) -> Cost:
    """The sessions of each list and clicks; or of each document, position and click, without the last click above."""
    start = time.process_time()
    sessions = pl.scan_parquet(place / "PARTS" / "*.parquet").select(KEYS)
    grouped = [sessions]
    if by == "document":
        at = [(pl.col(name).arr.get(k).alias(name) for name in ("ranking", "clicks")) for k in range(K)]
        grouped = [sessions.select("query", *columns, position=pl.lit(k)) for k, columns in enumerate(at)]
    tables = [table.group_by(pl.all()).len().collect(engine="streaming") for table in grouped]
    return Cost(time.process_time() - start, peak_memory(), sum(map(len, tables)))


def main() -> None:
    """Run with as many sessions as asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=SESSIONS)
    parser.add_argument("--kind", choices=KINDS, action="append")
    options = parser.parse_args()
    show_rows("counting", as_measured(measure(options.sessions, options.kind or KINDS)))


if __name__ == "__main__":
    main()
