"""A learner that is quick, and has all that a state can have: weights, an optimiser, random numbers."""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from cuolr.data.normalise import Normaliser
from cuolr.learners.gradient_learner import GradientLearner
from cuolr.policies.linear_policy import LinearPolicy
from cuolr.training.batches import SessionBatch
from cuolr.training.steps import NonFiniteLossError


@dataclass(frozen=True)
class ToyConfig:
    """Settings of the toy learner."""

    learning_rate: float = 0.05
    noise: float = 0.1
    fail_at: int = 0
    """The step at which the loss is not finite; 0 = none."""


class ToyLearner(GradientLearner):
    """A linear ranker by the softmax loss on clicks, with noise on the features."""

    Config: ClassVar[type[Any]] = ToyConfig

    def build(self, n_features: int, k: int, seed: int, normaliser: Normaliser) -> None:
        self.normaliser = normaliser
        self.random = torch.Generator().manual_seed(seed)
        self.weights = torch.randn(n_features, generator=self.random).requires_grad_()
        self.optimiser = torch.optim.Adam([self.weights], self.config.learning_rate)
        self.steps = 0

    def update(self, batch: SessionBatch) -> dict[str, float]:
        self.steps += 1
        if self.steps == self.config.fail_at:
            raise NonFiniteLossError("ranking_loss")
        noise = self.config.noise * torch.randn(batch.features.shape, generator=self.random)
        loss = (self._losses(batch, batch.features + noise) * batch.weight).mean()
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimiser.step()
        return {"ranking_loss": float(loss.detach())}

    def held_out_scores(self, batch: SessionBatch) -> Tensor:
        return -self._losses(batch, batch.features)

    def _losses(self, batch: SessionBatch, features: Tensor) -> Tensor:
        scores = (features @ self.weights).masked_fill(~batch.where, -1e9)
        return -(batch.rewards * scores.log_softmax(dim=1)).sum(dim=1)

    def policy(self) -> LinearPolicy:
        return LinearPolicy(self.weights.detach().numpy().copy(), self.normaliser)

    def state(self) -> dict[str, Any]:
        return {
            "weights": self.weights.detach().clone(),
            "optimiser": self.optimiser.state_dict(),
            "random": self.random.get_state(),
            "steps": self.steps,
            "batch": self._step,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        with torch.no_grad():
            self.weights.copy_(state["weights"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.random.set_state(state["random"])
        self.steps = state["steps"]
        self._step = state["batch"]
