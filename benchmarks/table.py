"""A row of the benchmark table, and measurements shared by benchmarks."""

import multiprocessing
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cuolr.cli.terminal import say, show_table


@dataclass(frozen=True)
class Row:
    """What was measured.

    Attributes:
        name: What of.
        value: The number.
        unit: Its unit; × for a ratio.
        goal: What it should be, empty where there is none.
        met: Whether it is.
    """

    name: str
    value: float
    unit: str
    goal: str
    met: bool


def show_rows(title: str, rows: Sequence[Row]) -> None:
    """Print what was measured, as one table."""
    lines = [[row.name, f"{row.value:,.3g}", row.unit, row.goal, "yes" if row.met else "NO"] for row in rows]
    show_table(title, ["measured", "value", "unit", "goal", "met"], lines)


def as_measured(rows: Iterable[Row]) -> list[Row]:
    """The rows, each of them said when it comes: of a long run that is stopped, what was measured is not lost."""
    found = []
    for row in rows:
        say(f"{row.name}: {row.value:,.3g} {row.unit}")
        found.append(row)
    return found


def in_process(job: Callable[..., Any], *arguments: Any) -> Any:
    """What a function returns in a process of its own, whose time and memory are its own, too."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(job, arguments)


def peak_memory() -> int:
    """The peak memory of this process so far, in bytes (Linux).

    Not `getrusage`: its maximum is inherited from the process that started this one.
    """
    match = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert match is not None
    return int(match[1]) * 1024


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Let torch use this many threads within the block."""
    import torch  # not every benchmark needs it

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
