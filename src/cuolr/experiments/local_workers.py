"""Workers on this machine: processes with one thread each, so that they do not compete for cores."""

import multiprocessing
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, Self

import joblib

from cuolr.experiments.cells import run_cell
from cuolr.experiments.results import CellResult
from cuolr.experiments.spec import Cell, Experiment
from cuolr.experiments.workers import Failure, Finished, describe

fcntl: ModuleType | None
try:
    import fcntl
except ModuleNotFoundError:  # not a POSIX system
    fcntl = None

PREFIX = "cuolr-"
# Locked while the folder's process is alive.
LOCK = ".in-use"
# Without locks, a folder counts as in use for this long.
SECONDS_WITHOUT_LOCKS = 24 * 3600


class Scratch:
    """An empty temporary folder that exists until it is closed. Also removes folders left by killed processes."""

    def __init__(self) -> None:
        _remove_abandoned()
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        if fcntl is None:
            self._lock = (self.path / LOCK).open("wb")
            return
        # The file is renamed after it is locked, so that the folder is never mistaken for an abandoned one.
        unlocked = self.path / f"{LOCK}.new"
        self._lock = unlocked.open("wb")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        os.rename(unlocked, self.path / LOCK)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the folder."""
        if fcntl is None:
            self._lock.close()  # Windows does not delete an open file
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()


def _remove_abandoned() -> None:
    for lock in Path(tempfile.gettempdir()).glob(f"{PREFIX}*/{LOCK}"):
        try:
            if fcntl is None:
                if time.time() - lock.stat().st_mtime > SECONDS_WITHOUT_LOCKS:
                    lock.unlink()  # Windows refuses while its process has it open
                    shutil.rmtree(lock.parent, ignore_errors=True)
                continue
            with lock.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(lock.parent, ignore_errors=True)
        except OSError:  # in use, owned by another user, or just removed
            continue


ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}


class Processes:
    """A pool of processes. Data and logs are in scratch files, which the processes map into memory.

    A process that dies, for example for lack of memory, breaks the pool. The cells that were running are then run
    again, one at a time, so that only the one that caused it fails.
    """

    def __init__(self, experiment: Experiment, jobs: int) -> None:
        self._experiment, self._jobs = experiment, jobs
        self._scratch = Scratch()
        self._count = 0
        self._under_way: dict[Future[CellResult], tuple[Cell, Path, Path | None]] = {}
        self._suspects: list[tuple[Cell, Path, Path | None]] = []
        self._environment = _environment(ONE_THREAD)
        self._pool = _new_pool(jobs)

    def __enter__(self) -> Self:
        # For as long as the pool may start processes, which it does when there is work.
        self._environment.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        for process in multiprocessing.active_children():
            process.terminate()  # cells under way are not waited for
        self._pool.shutdown(cancel_futures=True)
        self._scratch.close()
        self._environment.__exit__(None, None, None)

    @property
    def free(self) -> int:
        """The number of cells that can be submitted now, up to one more than processes, so that none is idle."""
        return self._jobs + 1 - len(self._under_way) - len(self._suspects)

    def share(self, value: Any) -> Path:
        """Write a value to a file that all processes can read."""
        self._count += 1
        path = self._scratch.path / f"{self._count}.joblib"
        joblib.dump(value, path)
        return path

    def forget(self, handle: Path) -> None:
        """Delete a shared value."""
        handle.unlink(missing_ok=True)

    def submit(self, cell: Cell, splits: Path, clicks: Path | None) -> None:
        """Run a cell."""
        try:
            future = self._pool.submit(_run, self._experiment, cell, splits, clicks)
        except BrokenProcessPool:  # noticed before the result of the cell that broke it was read
            self._suspects.append((cell, splits, clicks))
            return
        self._under_way[future] = (cell, splits, clicks)

    def next_finished(self) -> Iterator[Finished]:
        """Wait for at least one cell to finish."""
        if self._under_way:
            done, _ = wait(self._under_way, return_when=FIRST_COMPLETED)
            for future in done:
                work = self._under_way.pop(future)
                try:
                    yield work[0], future.result()
                except BrokenProcessPool:
                    self._suspects.append(work)
                except Exception as error:
                    yield work[0], Failure(describe(error))
        if self._suspects and not self._under_way:
            yield from self._try_alone()

    def _try_alone(self) -> Iterator[Finished]:
        self._pool.shutdown()
        for cell, splits, clicks in self._suspects:
            with _new_pool(1) as pool:
                try:
                    yield cell, pool.submit(_run, self._experiment, cell, splits, clicks).result()
                except BrokenProcessPool:
                    yield cell, Failure("its process was killed, probably for lack of memory; try fewer jobs")
                except Exception as error:
                    yield cell, Failure(describe(error))
        self._suspects = []
        self._pool = _new_pool(self._jobs)


def _new_pool(jobs: int) -> ProcessPoolExecutor:
    # Forked processes inherit the locks of threads that they do not have; spawned ones do not.
    return ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _begin)


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _begin() -> None:
    """Prepare a process."""
    import torch

    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the parent handles it
    parent = multiprocessing.parent_process()
    assert parent is not None

    def end_with_parent() -> None:
        parent.join()
        os._exit(1)

    # A parent that is killed cannot stop its processes, which would continue with their cells.
    threading.Thread(target=end_with_parent, daemon=True).start()


def _run(experiment: Experiment, cell: Cell, splits: Path, clicks: Path | None) -> CellResult:
    return run_cell(experiment, cell, _load(splits), None if clicks is None else _load(clicks))


@lru_cache(maxsize=4)
def _load(path: Path) -> Any:
    """A shared value, with memory-mapped arrays."""
    return joblib.load(path, mmap_mode="r")
