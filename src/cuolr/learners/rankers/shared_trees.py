"""LambdaMART whose lists are divided among the nodes of a Ray cluster, so that no machine needs to hold all documents.

Each node has a worker, which reads the features of its own lists from the log's memory-mapped file. LightGBM adds up
their histograms over its own network, so that all workers grow the same trees.

Deviation: `ray.train` has a trainer for LightGBM. All that it does for LightGBM is to exchange the workers' addresses,
which plain actors do, too, without its dependencies pyarrow and tensorboardX.
"""

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from cuolr.data.candidate_store import load_candidates
from cuolr.data.normalise import Normaliser
from cuolr.errors import InputError
from cuolr.files import versions
from cuolr.learners.rankers.base_ranker import BoostedTrees
from cuolr.learners.rankers.lambdamart import LambdaMartRanker, QueryGroups, useful_threads
from cuolr.logs.ray_cluster import first_line, require_versions
from cuolr.policies.policy import RankingPolicy
from cuolr.policies.trees_policy import load_lightgbm


@dataclass(frozen=True)
class StoredLists:
    """Lists of documents whose features are in a file.

    Attributes:
        folder: The folder of the candidates, at the same path on every node.
        lists: The lists, each document in one of them, without features; `rows` are those of the candidates.
    """

    folder: Path
    lists: QueryGroups

    def part(self, number: int, of: int) -> "StoredLists":
        """Every `of`-th list, from one number on; so parts are alike, in whatever order queries are."""
        lists = self.lists
        chosen = np.repeat(np.arange(len(lists.sizes)), lists.sizes) % of == number
        weight = None if lists.weight is None else lists.weight[chosen]
        assert lists.rows is not None
        grades, rows, sizes = lists.grades[chosen], lists.rows[chosen], lists.sizes[number::of]
        return replace(self, lists=replace(lists, grades=grades, rows=rows, sizes=sizes, weight=weight))

    def read(self, normaliser: Normaliser) -> QueryGroups:
        """The lists with the scaled features of their documents; those of others are not read."""
        candidates, rows = load_candidates(self.folder), self.lists.rows
        assert rows is not None
        used = np.zeros(candidates.n_documents, np.bool_)
        used[rows] = True
        features = np.empty((len(rows), candidates.n_features + normaliser.n_indicators), np.float32)
        order, end = np.argsort(rows), 0  # each document is in one list
        for _, scaled in normaliser.in_parts(candidates, used):
            features[order[end : end + len(scaled)]] = scaled
            end += len(scaled)
        return replace(self.lists, features=features, rows=None)


class TreesWorker:
    """The process that has the lists of a node."""

    def __init__(self, expected: Mapping[str, str]) -> None:
        """Check the versions of what computes."""
        require_versions(expected)

    def port(self) -> int:
        """A free port of the node."""
        with socket.socket() as free:
            free.bind(("", 0))
            port: int = free.getsockname()[1]
            return port

    def read(
        self, stored: StoredLists, parameters: Mapping[str, Any], normaliser: Normaliser, start: RankingPolicy | None
    ) -> None:
        """Read the lists of this worker, and what to start from."""
        self._ranker = LambdaMartRanker(stored.read(normaliser), parameters, normaliser)
        if start is not None:
            self._ranker.continue_from(start)

    def connect(self) -> None:
        """Bin the documents, along with all others. All have read theirs: LightGBM waits for two minutes only."""
        _ = self._ranker.booster

    def step(self) -> int:
        """Grow one more tree, along with all others; returns the number of trees."""
        return int(self._ranker.step()["trees"])

    def model(self) -> str:
        """The trees in LightGBM's text format."""
        text: str = self._ranker.booster.model_to_string()
        return text


class SharedTrees(BoostedTrees):
    """LambdaMART on a cluster. The model is scored in this process, which holds no training documents."""

    def __init__(
        self,
        ray: Any,
        stored: StoredLists,
        parameters: Mapping[str, Any],
        normaliser: Normaliser,
        start: RankingPolicy | None = None,
    ) -> None:
        """Divide the lists among the nodes with a core; each reads its own.

        Args:
            ray: The module `ray`, connected to a cluster.
            stored: The lists to train on.
            parameters: LightGBM's parameters; `num_threads` is an upper limit for each worker.
            normaliser: The normaliser that scales the features, kept in the policy.
            start: The model to start from; None = no trees.
        """
        super().__init__(useful_threads(parameters, stored.lists), normaliser)
        self._ray, self._lgb = ray, load_lightgbm()
        self._trees, self._fetched = 0, None
        nodes = _nodes(ray)[: len(stored.lists.sizes)]
        self._workers = [_worker(ray, node) for node in nodes]
        ports = self._answers([worker.port.remote() for worker in self._workers])
        addresses = [f"{node['NodeManagerAddress']}:{port}" for node, port in zip(nodes, ports, strict=True)]
        network = {"tree_learner": "data", "machines": ",".join(addresses)} if len(nodes) > 1 else {}
        tasks = []
        for i, (worker, port) in enumerate(zip(self._workers, ports, strict=True)):
            of_worker = {**parameters, **network, "local_listen_port": port}
            tasks.append(worker.read.remote(stored.part(i, len(nodes)), of_worker, normaliser, start))
        self._answers(tasks)
        self._answers([worker.connect.remote() for worker in self._workers])

    @property
    def booster(self) -> Any:
        """LightGBM's booster, with a copy of the trees."""
        if self._fetched is None:
            [text] = self._answers([self._workers[0].model.remote()])
            self._fetched = self._lgb.Booster(model_str=text)
        return self._fetched

    @property
    def n_trees(self) -> int:
        """The number of trees."""
        return self._trees

    def grow(self) -> None:
        """Grow one more tree."""
        self._trees = self._answers([worker.step.remote() for worker in self._workers])[0]
        self._fetched = None

    def _answers(self, tasks: Sequence[Any]) -> list[Any]:
        """The results of all tasks. If a worker fails, the others would wait for it: all are ended."""
        errors, waiting = self._ray.exceptions, list(tasks)
        try:
            while waiting:
                done, waiting = self._ray.wait(waiting)
                self._ray.get(done)
            answers: list[Any] = self._ray.get(list(tasks))
            return answers
        except errors.RayError as error:
            for worker in self._workers:
                self._ray.kill(worker)
            cause = error.cause if isinstance(error, errors.RayTaskError) else error
            if isinstance(cause, InputError):
                raise cause from None
            # One that lost another worker says so in LightGBM's words.
            if isinstance(error, errors.RayTaskError) and not isinstance(cause, self._lgb.basic.LightGBMError):
                raise
            raise InputError(
                f"ray: a worker that shares the trees was lost ({first_line(cause)}); continue from the last "
                "checkpoint with --resume, or train again"
            ) from None


def _nodes(ray: Any) -> list[dict[str, Any]]:
    """The nodes of a cluster that have a core."""
    nodes = [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1]
    if not nodes:
        raise InputError("ray: expected a node with a core, found none")
    return nodes


def _worker(ray: Any, node: Mapping[str, Any]) -> Any:
    """A worker on a node."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    place = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
    return ray.remote(num_cpus=1, scheduling_strategy=place)(TreesWorker).remote(versions())
