"""Workers on a Ray cluster, a core for each cell; needs the extra `cuolr[ray]`."""

from collections.abc import Iterator, Mapping
from typing import Any, Self

from cuolr.experiments.cells import Clicks, run_cell
from cuolr.experiments.datasets import Splits
from cuolr.experiments.local_workers import ONE_THREAD
from cuolr.experiments.results import CellResult
from cuolr.experiments.spec import Cell, Experiment
from cuolr.experiments.workers import Failure, Finished, describe
from cuolr.files import versions
from cuolr.logs.ray_cluster import connect, first_line, require_versions

# How often a cell is restarted if its process or node is lost.
RETRIES = 3


class RayWorkers:
    """Cells as tasks of a Ray cluster.

    Data and logs are in the object store of this process's node, so they live as long as it does. If another node is
    lost, Ray restarts its cells elsewhere. The same holds for a result that is lost before it arrives.
    """

    def __init__(self, experiment: Experiment, address: str) -> None:
        self._ray = connect(address)
        self._experiment, self._versions = self._ray.put(experiment), versions()
        # As in `Processes`, so that sums are taken in the same order and results are the same.
        environment = {"env_vars": ONE_THREAD}
        self._run = self._ray.remote(num_cpus=1, max_retries=RETRIES, runtime_env=environment)(_run)
        self._under_way: dict[Any, Cell] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ray.shutdown()  # cells under way are not waited for

    @property
    def free(self) -> int:
        """The number of cells that can be submitted now, up to one more than cores, so that none is idle."""
        return int(self._ray.cluster_resources().get("CPU", 0)) + 1 - len(self._under_way)

    def share(self, value: Any) -> Any:
        """Make a value available to all nodes."""
        return self._ray.put(value)

    def forget(self, handle: Any) -> None:
        """Nothing to do: Ray frees a value without handles."""

    def submit(self, cell: Cell, splits: Any, clicks: Any | None) -> None:
        """Run a cell."""
        self._under_way[self._run.remote(self._experiment, cell, splits, clicks, self._versions)] = cell

    def next_finished(self) -> Iterator[Finished]:
        """Wait for at least one cell to finish."""
        done, _ = self._ray.wait(list(self._under_way))
        for task in done:
            cell = self._under_way.pop(task)
            try:
                yield cell, self._ray.get(task)
            except self._ray.exceptions.RayError as error:
                yield cell, Failure(f"lost {RETRIES + 1} times, the last time by {first_line(error)}")


def _run(
    experiment: Experiment, cell: Cell, splits: Splits, clicks: Clicks | None, expected: Mapping[str, str]
) -> CellResult | Failure:
    """Run a cell on a node. An error is a result, and is not retried."""
    try:
        require_versions(expected)
        return run_cell(experiment, cell, splits, clicks)
    except Exception as error:
        return Failure(describe(error))
