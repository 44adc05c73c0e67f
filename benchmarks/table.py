"""A row of the benchmark table, and measurements shared by benchmarks."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


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
