"""What learners share that follow the gradient of a loss: the step, and going on after a stop."""

import copy
import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from cuolr.errors import InputError
from cuolr.training import distributed
from cuolr.training.base_learner import Learner, NonFiniteLossError

# The least norm that gradients may be clipped to: with 0 nothing would be learned.
LEAST_NORM = 1e-12


class GradientLearner(Learner):
    """Learns by steps of Adam, which is made once and keeps its moments.

    Attributes:
        networks: All that is learned, and target networks, which follow by themselves.
        max_gradient_norm: The gradient of each network is clipped to this norm; None = as it is.
    """

    networks: nn.ModuleDict
    max_gradient_norm: float | None

    def learn_with(self, networks: Mapping[str, tuple[nn.Module, float]], max_gradient_norm: float | None) -> None:
        """Set up the networks, each with its learning rate; parameters that need no gradient are left alone."""
        self.networks = nn.ModuleDict({name: network for name, (network, _) in networks.items()})
        self.max_gradient_norm = max_gradient_norm
        groups = [
            {"params": [p for p in network.parameters() if p.requires_grad], "lr": rate}
            for network, rate in networks.values()
        ]
        self._optimiser = torch.optim.Adam(groups, foreach=True)

    def descend(self, losses: Mapping[str, Tensor], size: Tensor) -> dict[str, float]:
        """One step down the gradient of the sum of these losses; returns them, and their sum as `loss`.

        Args:
            losses: Means over what this process has of the batch.
            size: [] of how many things they are the mean. The step, and what is returned, is of the mean over all.

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
        """Networks and optimiser."""
        return copy.deepcopy({"networks": self.networks.state_dict(), "optimiser": self._optimiser.state_dict()})

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self.networks.load_state_dict(state["networks"])
        self._optimiser.load_state_dict(copy.deepcopy(state["optimiser"]))


def expect_layers(sizes: Sequence[int]) -> None:
    """Refuse hidden layers without a unit."""
    if any(size < 1 for size in sizes):
        raise InputError(f"setting 'learner.hidden': expected layers of at least 1 unit, found {list(sizes)}")


def expect(config: object, **limits: tuple[float, float]) -> None:
    """Refuse a config with a setting outside of its limits, each given as (least, greatest), or that is infinite."""
    values = {name: getattr(config, name) for name in limits}
    problems = [
        f"setting 'learner.{name}': expected "
        + (f"{least} to {greatest}" if math.isfinite(greatest) else f"a finite number from {least} up")
        + f", found {values[name]}"
        for name, (least, greatest) in limits.items()
        if values[name] is not None and not (least <= values[name] <= greatest and math.isfinite(values[name]))
    ]
    if problems:
        raise InputError(problems)
