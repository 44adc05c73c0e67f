"""The base class of learners trained by gradient descent: batches, the step, and the state to resume from."""

import copy
import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from cuolr.data.normalise import Normaliser
from cuolr.policies.policy import RankingPolicy
from cuolr.training import distributed
from cuolr.training.base_learner import FitTask, Learner
from cuolr.training.batches import Batches, SessionBatch, WeightedLists
from cuolr.training.steps import NonFiniteLossError, Steps
from cuolr.training.warm_start import WarmStart, load_networks


class GradientLearner(Learner, Steps):
    """Learns from batches of lists with Adam. One optimiser is kept for the whole run.

    Attributes:
        networks: All networks: the trained ones and the target networks.
        max_gradient_norm: Norm to which the gradient of each network is clipped; None = no clipping.
        max_unshown: Maximum number of a query's unshown documents that are added to each list.
    """

    data_parallel = True
    networks: nn.ModuleDict
    max_gradient_norm: float | None
    max_unshown: int = 0

    def fit(self, task: FitTask) -> RankingPolicy:
        """Build the networks, divide the log into batches, and run the training loop."""
        lists = self.weighted_lists(task)
        n_features = lists.candidates.n_features + task.normaliser.n_indicators
        self.build(n_features, lists.ranking.shape[1], task.config.seed, task.normaliser)
        if task.start is not None:
            self.start_from(task.start)
        self.learn_from(*task.batches(lists, self.max_unshown))
        task.loop.provenance = {**task.loop.provenance, **self.chosen()}
        return task.loop.run(self)

    def weighted_lists(self, task: FitTask) -> WeightedLists:
        """The lists to train on; a learner that corrects for bias weights their clicks here."""
        return WeightedLists.of(task.log)

    @abstractmethod
    def build(self, n_features: int, k: int, seed: int, normaliser: Normaliser) -> None:
        """Create the networks.

        Args:
            n_features: F, the number of scaled features of a document, with the indicators of missing values.
            k: K, the number of positions of the longest list.
            seed: Seed of the initial weights; the global random state does not change.
            normaliser: The normaliser that scales the features of the batches, kept in the policy.
        """

    @abstractmethod
    def update(self, batch: SessionBatch) -> dict[str, float]:
        """Take one step on a batch; returns the values to log, by name.

        Raises:
            NonFiniteLossError: Before anything is changed.
        """

    @abstractmethod
    def held_out_scores(self, batch: SessionBatch) -> Tensor:
        """[B] how well the model explains the clicks on each held-out list, higher = better."""

    def start_from(self, start: WarmStart) -> None:
        """Take over the networks of a trained model; for learners without a `cold_start`."""
        raise NotImplementedError

    def take_over(self, start: WarmStart, policy_networks: Mapping[str, nn.Module]) -> None:
        """Set the networks to those of a trained model: of its policy, and the others of its checkpoint.

        Args:
            start: The model.
            policy_networks: The networks of this learner that make up its policy, by their names there.
        """
        if start.networks is not None:
            load_networks(self.networks, start.networks, start)
        for name, network in policy_networks.items():
            load_networks(network, start.weights(name), start)

    def chosen(self) -> dict[str, Any]:
        """Settings that were left to the learner, as JSON values; saved with the model."""
        return {}

    def learn_from(self, batches: Batches, held_out: Batches | None = None) -> None:
        """Set the training batches, and the held-out batches that `held_out_score` uses."""
        self._batches, self._held_out, self._step = batches, held_out, 0

    def step(self) -> dict[str, float]:
        """Take one step on the next batch, or on this process's part of it."""
        batch = self._batches.at(self._step, distributed.part_of(self._batches.batch_size))
        self._step += 1
        return self.update(batch)

    def held_out_score(self) -> float:
        """The mean of `held_out_scores` over the held-out sessions."""
        assert self._held_out is not None, "nothing was held out"
        return self._held_out.mean(self.held_out_scores)

    def learn_with(self, networks: Mapping[str, tuple[nn.Module, float]], max_gradient_norm: float | None) -> None:
        """Set up the optimiser with the networks, each with its learning rate; frozen parameters stay as they are."""
        self._step = 0
        self.networks = nn.ModuleDict({name: network for name, (network, _) in networks.items()})
        self.max_gradient_norm = max_gradient_norm
        groups = [
            {"params": [p for p in network.parameters() if p.requires_grad], "lr": rate}
            for network, rate in networks.values()
        ]
        self._optimiser = torch.optim.Adam(groups, foreach=True)

    def descend(self, losses: Mapping[str, Tensor], size: Tensor) -> dict[str, float]:
        """Take one step down the gradient of the sum of these losses; returns them, and their sum as `loss`.

        Args:
            losses: The losses, each a mean over this process's part of the batch.
            size: [] the number of items in that mean. The step and the returned values use the mean over all processes.

        Raises:
            NonFiniteLossError: Before anything is changed.
        """
        share = distributed.share(size.float())
        values = dict(zip(losses, distributed.total(torch.stack(list(losses.values())) * share).tolist(), strict=True))
        for name, value in values.items():
            if not math.isfinite(value):
                raise NonFiniteLossError(name)
        self._optimiser.zero_grad()
        torch.autograd.backward(list(losses.values()), [share] * len(losses))
        distributed.add_gradients(self.networks.parameters())
        if self.max_gradient_norm is not None:
            for group in self._optimiser.param_groups:
                nn.utils.clip_grad_norm_(group["params"], self.max_gradient_norm)
        self._optimiser.step()
        return {"loss": sum(values.values()), **values}

    def state(self) -> dict[str, Any]:
        """The step number, the networks and the optimiser."""
        networks, optimiser = self.networks.state_dict(), self._optimiser.state_dict()
        return copy.deepcopy({"step": self._step, "networks": networks, "optimiser": optimiser})

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from `state`."""
        self._step = state["step"]
        self.networks.load_state_dict(state["networks"])
        self._optimiser.load_state_dict(copy.deepcopy(state["optimiser"]))
