"""Rankers as actors of a Ray cluster: all of them take a step at the same time, with the bits of one process.

A ranker depends on nothing but its own steps, each of which is determined by the ranker before it. So a ranker that is
lost with its process or node is made anew, and takes the same steps again.
"""

import copy
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch

from cuolr.errors import InputError
from cuolr.files import versions
from cuolr.learners.rankers.base_ranker import BaseRanker
from cuolr.logs.ray_cluster import first_line, require_versions
from cuolr.policies.policy import ScaledScoringPolicy
from cuolr.types import Doubles, Floats

# How often a ranker is made anew if its process or node is lost.
RESTARTS = 3
# Steps taken, and the state at that point: none, or a reference, in a list so that Ray does not fetch it.
SavedState: TypeAlias = tuple[int, list[Any]]


def on_cluster(ray: Any, kinds: Sequence[Sequence[BaseRanker]]) -> Sequence[Sequence[BaseRanker]]:
    """These rankers, which have not taken a step, each in a process of its own.

    Args:
        ray: The module `ray`, connected to a cluster.
        kinds: The rankers, by kind and fold.
    """
    # One core suffices for all of them, should other nodes be lost; until then, they are spread over the nodes.
    share = 1 / sum(map(len, kinds))
    # A call is repeated for as long as its ranker can be made anew: Ray counts attempts while that goes on, too.
    options = {"num_cpus": share, "max_restarts": RESTARTS, "max_task_retries": -1, "scheduling_strategy": "SPREAD"}
    actor = ray.remote(**options)(RankerActor)
    return [[RayRanker(ray, actor.remote(ranker, versions())) for ranker in kind] for kind in kinds]


class RankerActor:
    """The process of a ranker."""

    def __init__(self, ranker: BaseRanker, expected: dict[str, str]) -> None:
        """Take over a ranker that has not taken a step.

        Args:
            ranker: The ranker.
            expected: The versions of what computes.
        """
        require_versions(expected)
        torch.set_num_threads(1)  # as on one machine: the last bits depend on it
        self._ranker = ranker
        self._steps: int | None = None
        self._logged: dict[str, float] = {}

    def step(self, saved: SavedState, steps: int) -> dict[str, float]:
        """The values of the last of so many steps, after those that are still to be taken."""
        import ray

        if self._steps is None:
            self._steps, state = saved
            if state:
                self._ranker.load_state(ray.get(state[0]))
        while self._steps < steps:
            self._logged = self._ranker.step()
            self._steps += 1
        return self._logged

    def call(self, saved: SavedState, steps: int, method: str, *arguments: Any) -> Any:
        """The result of a method of the ranker after so many steps."""
        self.step(saved, steps)
        return getattr(self._ranker, method)(*arguments)


class RayRanker(BaseRanker):
    """A ranker in another process."""

    def __init__(self, ray: Any, actor: Any) -> None:
        self._ray, self._actor = ray, actor
        self._steps, self._saved = 0, (0, list[Any]())

    def begin_step(self) -> Callable[[], dict[str, float]]:
        """Start the next step; returns how to wait for its values."""
        self._steps += 1
        return self._result(self._actor.step.remote(self._saved, self._steps))

    def begin_score(self, features: Floats) -> Callable[[], Doubles]:
        """Start to score; returns how to wait for the scores."""
        return self._call("score", features)

    def step(self) -> dict[str, float]:
        """Take one step, and wait for its values."""
        return self.begin_step()()

    def score(self, features: Floats) -> Doubles:
        """[n] the scores of scaled documents [n, F]."""
        return self.begin_score(features)()

    def policy(self) -> ScaledScoringPolicy:
        """The current ranker as a policy."""
        policy: ScaledScoringPolicy = self._call("policy")()
        return copy.deepcopy(policy)  # what Ray returns is in its shared memory, and cannot be written to

    def state(self) -> dict[str, Any]:
        """The state of the ranker, from which it goes on if its process is lost."""
        state: dict[str, Any] = self._call("state")()
        self._saved = self._steps, [self._ray.put(state)]
        return state

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from `state`."""
        self._saved = self._steps, [self._ray.put(state)]
        self._call("load_state", state)()

    def _call(self, method: str, *arguments: Any) -> Callable[[], Any]:
        return self._result(self._actor.call.remote(self._saved, self._steps, method, *arguments))

    def _result(self, task: Any) -> Callable[[], Any]:
        def wait() -> Any:
            errors = self._ray.exceptions
            try:
                return self._ray.get(task)
            except errors.RayTaskError as error:
                if isinstance(error.cause, InputError):
                    raise error.cause from None
                raise
            except errors.RayError as error:
                raise InputError(
                    f"ray: a ranker was lost {RESTARTS + 1} times, the last time by {first_line(error)}"
                ) from None

        return wait
