"""What the policy of `factored` is made of: list-wise rankers of attractiveness."""

import copy
from collections.abc import Mapping
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from cuolr.data.normalise import Normaliser
from cuolr.learners.counterfactual.listwise import softmax_loss
from cuolr.learners.factored.click_rates import Evidence
from cuolr.networks.layers import DocumentNetwork
from cuolr.policies.lambdamart_policy import RANKING_TREES, LambdaMartPolicy, load_lightgbm
from cuolr.policies.network_policy import NetworkPolicy
from cuolr.policies.policy import ScaledScoringPolicy
from cuolr.training.steps import NonFiniteLossError
from cuolr.types import Doubles, Ints

# Attractiveness as LightGBM wants grades: whole numbers from 0.
LEVELS = 30
# Documents that are worth a thread: with fewer, LightGBM's threads wait for each other, and on a busy machine for long.
DOCUMENTS_PER_THREAD = 50_000


class FittedRanker(Protocol):
    """A part of the policy."""

    def score(self, features: Tensor) -> Doubles:
        """[n] of scaled documents [n, F], at least one."""

    def policy(self) -> ScaledScoringPolicy:
        """As it is now; what it learns later does not change it."""


class NetworkRanker:
    """Learns α̂ by the softmax list loss."""

    def __init__(
        self,
        n_features: int,
        hidden: tuple[int, ...],
        learning_rate: float,
        max_gradient_norm: float | None,
        normaliser: Normaliser,
    ) -> None:
        self._network = DocumentNetwork(n_features, hidden)
        self._optimiser = torch.optim.Adam(self._network.parameters(), lr=learning_rate, foreach=True)
        self._max_gradient_norm = max_gradient_norm
        self._normaliser = normaliser

    def descend(self, evidence: Evidence, rows: Ints) -> float:
        """A step on these queries; returns the loss."""
        scores = self._network(evidence.features[evidence.documents[rows]])
        losses = softmax_loss(scores, evidence.attractiveness[rows], evidence.where[rows])
        loss = (losses * evidence.weight[rows]).mean()
        if not loss.isfinite():
            raise NonFiniteLossError("ranking_loss")
        self._optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        if self._max_gradient_norm is not None:
            nn.utils.clip_grad_norm_(self._network.parameters(), self._max_gradient_norm)
        self._optimiser.step()
        return float(loss.detach())

    @torch.no_grad()
    def score(self, features: Tensor) -> Doubles:
        """[n] the network's output."""
        scores: Doubles = self._network(features).double().numpy()
        return scores

    def policy(self) -> NetworkPolicy:
        """The network."""
        return NetworkPolicy(self._network, self._normaliser).snapshot()

    def state(self) -> dict[str, Any]:
        """Network and optimiser."""
        return copy.deepcopy({"network": self._network.state_dict(), "optimiser": self._optimiser.state_dict()})

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self._network.load_state_dict(state["network"])
        self._optimiser.load_state_dict(copy.deepcopy(state["optimiser"]))


class TreeRanker:
    """LambdaMART on α̂ as grades with linear gain."""

    def __init__(self, evidence: Evidence, rows: Ints, parameters: Mapping[str, Any], normaliser: Normaliser) -> None:
        """No tree yet.

        Args:
            evidence: What there is to learn from.
            rows: The queries to learn from.
            parameters: Of LightGBM.
            normaliser: Of the evidence's features.
        """
        where = evidence.where[rows]
        self._threads = min(int(parameters["num_threads"]), 1 + int(where.sum()) // DOCUMENTS_PER_THREAD)
        self._normaliser = normaliser
        parameters = {
            **RANKING_TREES,
            "label_gain": list(range(LEVELS + 1)),
            **parameters,
            "num_threads": self._threads,
        }
        sizes = where.sum(dim=1)
        highest = evidence.attractiveness.max().clamp(min=1e-9)
        lgb = load_lightgbm()
        dataset = lgb.Dataset(
            evidence.features[evidence.documents[rows][where]].numpy(),
            (LEVELS * evidence.attractiveness[rows][where] / highest).round().int().numpy(),
            group=sizes[sizes > 0].numpy(),
            weight=evidence.weight[rows].repeat_interleave(sizes).numpy(),
            params=parameters,
        )
        self._booster = lgb.Booster(parameters, dataset)

    def grow(self) -> None:
        """One more tree."""
        self._booster.update()

    def score(self, features: Tensor) -> Doubles:
        """[n] the sum over trees."""
        scores: Doubles = self._booster.predict(features.numpy(), num_threads=self._threads)
        return scores

    def policy(self) -> LambdaMartPolicy:
        """The trees grown so far."""
        return LambdaMartPolicy(self._booster.model_to_string(), self._threads, self._normaliser)
