import os
import sys
from pathlib import Path
from typing import Any

import pytest

from cuolr.errors import InputError
from cuolr.experiments.ray_workers import RayWorkers
from cuolr.experiments.results_folder import ResultsFolder, read_results
from cuolr.experiments.runner import plan, run
from cuolr.experiments.spec import Cell
from cuolr.experiments.workers import Failure, Finished
from tests.experiments.small import numbers, small, tiny_data

pytest.importorskip("ray", reason="Ray is not here: pip install 'cuolr[ray]'")

# Two cells for each core of two nodes, which take a second each.
LONGER = {"steps": 150, "validate_every": 10, "batch_size": 64}


@pytest.mark.thorough
def test_a_cluster_gives_the_same_numbers_as_one_cell_after_the_other(
    cluster: Any, finished: Path, tmp_path: Path
) -> None:
    planned, told = plan(small(), tiny_data()), list[Finished]()
    with RayWorkers(small(), cluster.address) as workers:
        assert workers.free == 3
        run(planned, list(planned.names), ResultsFolder(tmp_path), workers, told.append)
        cluster.add_node(num_cpus=1)
        assert workers.free == 4, "a node that joins is used"
    assert len(told) == 18
    here, there = read_results(finished).cells, read_results(tmp_path).cells
    assert {cell: numbers(result) for cell, result in here.items()} == {
        cell: numbers(result) for cell, result in there.items()
    }


@pytest.mark.thorough
def test_the_loss_of_a_node_loses_no_cell(cluster: Any, tmp_path: Path) -> None:
    experiment = small(seeds=1, training=LONGER)
    planned, told = plan(experiment, tiny_data()), list[Finished]()
    on_lost_node: list[int] = []

    def kill_a_node(finished: Finished) -> None:
        told.append(finished)
        if len(told) == 2:
            node = next(node for node in cluster.list_all_nodes() if node is not cluster.head_node)
            on_lost_node.append(len(workers._under_way))
            cluster.remove_node(node, allow_graceful=False)

    with RayWorkers(experiment, cluster.address) as workers:
        run(planned, list(planned.names), ResultsFolder(tmp_path), workers, kill_a_node)
    assert on_lost_node[0] >= 2, "both nodes were at work"
    results = read_results(tmp_path)
    assert (len(results.cells), results.failed, results.missing) == (len(planned.names), {}, ())
    assert len(told) == len(planned.names)


class Deadly:
    """Ends the process that reads it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os._exit, (1,)


@pytest.mark.thorough
def test_what_goes_wrong_with_a_cell_is_told_in_a_line(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cuolr.experiments.ray_workers.RETRIES", 0)
    cell = Cell("LOGGING", 0, 1, "ranksvm")
    with RayWorkers(small(), cluster.address) as workers:
        workers.submit(cell, workers.share({}), None)
        assert list(workers.next_finished()) == [(cell, Failure("KeyError: 'train'"))]
        workers.submit(cell, workers.share(Deadly()), None)
        ((_, lost),) = workers.next_finished()
        assert isinstance(lost, Failure)
        assert lost.error.startswith("lost 1 times")
        assert "\n" not in lost.error
        workers._versions = {**workers._versions, "torch": "1.0"}
        workers.submit(cell, workers.share({}), None)
        ((_, other),) = workers.next_finished()
        assert isinstance(other, Failure)
        assert other.error.startswith("expected torch 1.0 on every node, found ")


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("127.0.0.1:9", "Connection refused"),
        ("nonsense", "Invalid address format"),
    ],
)
def test_an_address_where_no_cluster_is_gives_one_line(address: str, reason: str) -> None:
    with pytest.raises(InputError) as error:
        RayWorkers(small(), address)
    (problem,) = error.value.problems
    assert f"no Ray cluster at '{address}'" in problem
    assert reason in problem
    assert "\n" not in problem


def test_without_ray_it_is_said_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"^Ray is not installed; install it with: pip install 'cuolr\[ray\]'$"):
        RayWorkers(small(), "auto")
