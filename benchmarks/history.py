"""The history of the benchmarks: a line of JSON for each recorded run, with the machine that it ran on."""

import json
import os
import platform
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import cuolr
from benchmarks.table import Row

HISTORY = Path(__file__).parent / "history.jsonl"
# A measurement this much worse than the median of earlier runs is a slowdown.
TOLERANCE = 0.2
# Runs that the median is over.
LATEST = 5
# Units of which less is better; and words of names that say that more is.
LESS_IS_BETTER = {"s", "ms", "CPU s", "CPU ms", "GB", "×"}
MORE_IS_BETTER = re.compile(r"speed|nDCG|rows per second|answered a second|first read over a read")


@dataclass(frozen=True)
class Machine:
    """What times depend on.

    Attributes:
        cpu: Model of the processor.
        cores: Cores that this process may use.
    """

    cpu: str
    cores: int


def this_machine() -> Machine:
    """The machine that this process runs on."""
    known = Path("/proc/cpuinfo")
    match = re.search(r"model name\s*:\s*(.+)", known.read_text()) if known.is_file() else None
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return Machine(match[1].strip() if match else platform.processor(), cores)


def record(rows: Sequence[Row], machine: Machine, history: Path = HISTORY) -> None:
    """Add a run to the history."""
    run = {
        "date": datetime.now(UTC).date().isoformat(),
        "cuolr": cuolr.__version__,
        **asdict(machine),
        "rows": {row.name: float(f"{row.value:.6g}") for row in rows},
    }
    with history.open("a", encoding="utf-8") as file:
        file.write(json.dumps(run, ensure_ascii=False) + "\n")


def earlier_values(machine: Machine, history: Path = HISTORY) -> dict[str, float]:
    """The median of each measurement over the latest runs on a machine like this one."""
    if not history.is_file():
        return {}
    runs = [json.loads(line) for line in history.read_text(encoding="utf-8").splitlines()]
    of_machine = [run["rows"] for run in runs if Machine(run["cpu"], run["cores"]) == machine]
    names = {name for rows in of_machine for name in rows}
    return {name: median([rows[name] for rows in of_machine if name in rows][-LATEST:]) for name in names}


def change(row: Row, before: float | None) -> tuple[str, bool]:
    """How a measurement differs from earlier ones, in percent, and whether that is a slowdown."""
    more_is_better = MORE_IS_BETTER.search(row.name) is not None or row.unit.endswith("/s")
    if before is None or before <= 0 or row.value <= 0 or not (more_is_better or row.unit in LESS_IS_BETTER):
        return "", False
    worse = before / row.value if more_is_better else row.value / before
    return f"{row.value / before - 1:+.0%}", worse > 1 + TOLERANCE
