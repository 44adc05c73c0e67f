"""Progress of long work, reported stage by stage."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from time import perf_counter, process_time
from typing import TypeAlias

# Called with the amount done since the last call.
Progress: TypeAlias = Callable[[int], None]
# Called with the share of the work that was done since the last call.
Share: TypeAlias = Callable[[float], None]
# Called when a stage begins, with its name and the amount to do; None = not known.
Stages: TypeAlias = Callable[[str, int | None], Progress]


def no_progress(amount: float) -> None:
    """Progress that is not shown."""


def in_shares(progress: Progress, total: int) -> Share:
    """Progress that takes the share of the work that was done since the last call, for a stage with this total."""
    done, lock = 0.0, Lock()  # rows are read by several threads

    def advance(share: float) -> None:
        nonlocal done
        with lock:
            before, done = done, done + share
            progress(round(total * done) - round(total * before))

    return advance


def share_of(progress: Share, share: float) -> Share:
    """Progress of a part of the work, given the share of the whole that it is."""
    return lambda done: progress(share * done)


def no_stages(name: str, total: int | None) -> Progress:
    """Stages that are not shown."""
    return no_progress


@dataclass
class Profile:
    """Wall-clock and CPU seconds by stage; a stage that is there again adds to its time.

    Attributes:
        seconds: Of each stage, in the order of their beginnings.
    """

    seconds: dict[str, tuple[float, float]] = field(default_factory=dict)
    _current: tuple[str, float, float] | None = None

    def begin(self, name: str | None) -> None:
        """End the stage that goes on, and begin another; None = nothing that is measured."""
        now = perf_counter(), process_time()
        if self._current is not None:
            earlier, wall, cpu = self._current
            before = self.seconds[earlier]
            self.seconds[earlier] = before[0] + now[0] - wall, before[1] + now[1] - cpu
        self._current = None if name is None else (name, *now)
        if name is not None:
            self.seconds.setdefault(name, (0.0, 0.0))

    @contextmanager
    def during(self, name: str) -> Iterator[None]:
        """A stage within the one that goes on, which then continues."""
        outer = None if self._current is None else self._current[0]
        self.begin(name)
        try:
            yield
        finally:
            self.begin(outer)

    def of(self, stages: Stages) -> Stages:
        """The same stages, measured."""

        def begin(name: str, total: int | None) -> Progress:
            self.begin(name)
            return stages(name, total)

        return begin
