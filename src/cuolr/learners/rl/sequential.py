"""What all learners share that place one document after the other: states, a step, and the policy they give."""

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

import torch
from torch import Tensor, nn

from cuolr.config import Range, check_ranges
from cuolr.data.normalise import Normaliser
from cuolr.learners.gradient_learner import GradientLearner
from cuolr.learners.rl.mdp import Episodes
from cuolr.networks.encoder import build_encoder, encoder_config
from cuolr.networks.layers import PairNetwork, seeded
from cuolr.policies.sequential_policy import SequentialPolicy
from cuolr.training import distributed
from cuolr.training.batches import SessionBatch


@dataclass(frozen=True)
class SequentialConfig:
    """Settings of every learner that places one document after the other.

    Attributes:
        encoder: The registered name of the state encoder φ.
        encoder_settings: Its own settings.
        encoder_learning_rate: η_φ of Algorithm 1.
        hidden: The sizes of the two hidden layers of each network.
        candidates: What can be placed at a step of training: `shown`, what is left of the logged list, or `all`, the
            query's unshown documents as well.
        max_unshown: With `all`, at most this many unshown documents with each list.
        max_gradient_norm: The gradient of each network is clipped to this norm; none = as it is.
        precision: Of the products in training; ranking is in float32.
    """

    encoder: str = "attention"
    encoder_settings: dict[str, bool | int | float | str] = field(default_factory=dict)
    encoder_learning_rate: Annotated[float, Range(0, 1)] = 1e-6
    hidden: tuple[Annotated[int, Range(1)], Annotated[int, Range(1)]] = (256, 256)
    candidates: Literal["shown", "all"] = "shown"
    max_unshown: Annotated[int, Range(1, 10_000)] = 10
    max_gradient_norm: Annotated[float, Range(above=0)] | None = None
    precision: Literal["float32", "bfloat16"] = "float32"

    def __post_init__(self) -> None:
        check_ranges(self)
        encoder_config(self.encoder, self.encoder_settings)  # raises where they are unknown


@dataclass(frozen=True)
class Losses:
    """What a learner makes of a batch.

    Attributes:
        minimised: Scalars whose sum is minimised.
        watched: Scalars that are plotted only.
        log_likelihood: [K, B] of what the log shows at each step, in the learner's own terms.
        weights: Of what is watched and is not a mean over steps: what it is divided by.
    """

    minimised: dict[str, Tensor]
    watched: dict[str, Tensor]
    log_likelihood: Tensor
    weights: dict[str, Tensor] = field(default_factory=dict)


class SequentialLearner(GradientLearner):
    """Learns a policy that places one document after the other, from the losses of a subclass."""

    config: SequentialConfig

    def build(self, n_features: int, k: int, seed: int, normaliser: Normaliser) -> None:
        """A new state encoder, and the networks of the subclass."""
        config = self.config
        self.max_unshown = config.max_unshown if config.candidates == "all" else 0
        self._n_features = n_features
        self._normaliser = normaliser
        with seeded(seed):
            self.encoder = build_encoder(config.encoder, config.encoder_settings, n_features, k)
            networks = {"encoder": (self.encoder, config.encoder_learning_rate), **self.build_networks()}
        self.learn_with(networks, config.max_gradient_norm)

    @abstractmethod
    def build_networks(self) -> dict[str, tuple[nn.Module, float]]:
        """Make the networks beside the encoder; each by name, with its learning rate."""

    @abstractmethod
    def losses(self, episodes: Episodes) -> Losses:
        """What the learner minimises."""

    @abstractmethod
    def policy(self) -> SequentialPolicy:
        """The ranking policy learned so far; later steps do not change it."""

    def after_step(self, losses: Losses) -> None:
        """What follows a step of the optimiser, such as the update of target networks."""

    def update(self, batch: SessionBatch) -> dict[str, float]:
        """One step on the losses of a batch."""
        losses, steps = self._losses(batch), batch.where.sum()
        plotted = self.descend(losses.minimised, steps)
        losses = replace(losses, watched=_over_all_processes(losses, steps))
        self.after_step(losses)
        return plotted | {name: value.item() for name, value in losses.watched.items()}

    @torch.no_grad()
    def held_out_scores(self, batch: SessionBatch) -> Tensor:
        """[B] the mean log-likelihood of what the log shows, over the positions of each list."""
        return self._episodes(batch).mean_per_list(self._losses(batch).log_likelihood)

    def pair_network(self) -> PairNetwork:
        """A new network over [state ; document]."""
        return PairNetwork(self.encoder.n_states, self._n_features, self.config.hidden)

    def states(self, episodes: Episodes) -> Tensor:
        """[K, B, S] the state at each step."""
        states: Tensor = self.encoder(episodes.shown)
        return states[:, :-1].transpose(0, 1).contiguous()

    def greedy_policy(self, scorer: PairNetwork, **options: Any) -> SequentialPolicy:
        """A policy of its own that places the document that `scorer` scores highest."""
        return SequentialPolicy(self.encoder, scorer, self._normaliser, **options).snapshot()

    def _losses(self, batch: SessionBatch) -> Losses:
        with torch.autocast("cpu", torch.bfloat16, enabled=self.config.precision == "bfloat16"):
            return self.losses(self._episodes(batch))

    def _episodes(self, batch: SessionBatch) -> Episodes:
        return Episodes.of(batch, with_unshown=self.config.candidates == "all")


def _over_all_processes(losses: Losses, steps: Tensor) -> dict[str, Tensor]:
    """What is watched, for the whole batch."""
    if not losses.watched:
        return {}
    weights = torch.stack([losses.weights.get(name, steps).float() for name in losses.watched])
    values = distributed.total(torch.stack(list(losses.watched.values())) * distributed.share(weights))
    return dict(zip(losses.watched, values, strict=True))
