"""Kinds of files dealt out to several processes, which tell what they counted."""

import multiprocessing
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

# Called with a kind and its counts so far.
Tell: TypeAlias = Callable[[tuple[str, Counter[str]]], None]
Work: TypeAlias = Callable[[Sequence[str], Tell], None]

_FORK = multiprocessing.get_context("fork")


def in_processes(work: Work, kinds: Sequence[str], processes: int) -> Iterator[tuple[str, Counter[str]]]:
    """Deal out the kinds, and yield what is told until all processes have ended.

    Args:
        work: Runs the cases of its kinds.
        kinds: All of them.
        processes: How many processes; one more waits for them.

    Raises:
        RuntimeError: If a process failed.
    """
    told: multiprocessing.Queue[tuple[str, Counter[str]] | None] = _FORK.Queue()

    def each(own: Sequence[str]) -> None:
        try:
            work(own, told.put)
        finally:
            told.put(None)

    workers = [_FORK.Process(target=each, args=(kinds[i::processes],)) for i in range(processes)]
    for worker in workers:
        worker.start()
    left = len(workers)
    while left:
        found = told.get()
        if found is None:
            left -= 1
        else:
            yield found
    for worker in workers:
        worker.join()
        if worker.exitcode:
            raise RuntimeError("a process of the fuzzer failed; see above")
