"""The base class of learners that place one document after the other: states, losses and the policy."""

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, TypeAlias

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
from cuolr.training.batches import Batches, SessionBatch
from cuolr.training.warm_start import WarmStart

Precision: TypeAlias = Literal["float32", "bfloat16"]
# Largest difference of a loss in bfloat16 products, relative to the largest of the losses, that counts as rounding.
ROUNDING = 0.02


@dataclass(frozen=True)
class SequentialConfig:
    """Settings of every learner that places one document after the other.

    Attributes:
        encoder: Registered name of the state encoder φ.
        encoder_settings: Settings of the state encoder.
        encoder_learning_rate: Learning rate of the state encoder, η_φ of Algorithm 1.
        hidden: Sizes of the two hidden layers of each network.
        candidates: Documents that can be placed in training: the remaining ones of the logged list (`shown`), or the
            query's unshown documents as well (`all`).
        max_unshown: Maximum number of unshown documents per list, with candidates = `all`.
        max_gradient_norm: Norm to which the gradient of each network is clipped; none = no clipping.
        precision: Precision of matrix products in training; ranking always uses float32. `auto` is bfloat16 if the
            processor computes with it, and the losses of the first batch are the same but for rounding.
    """

    encoder: str = "attention"
    encoder_settings: dict[str, bool | int | float | str] = field(default_factory=dict)
    encoder_learning_rate: Annotated[float, Range(0, 1)] = 1e-6
    hidden: tuple[Annotated[int, Range(1)], Annotated[int, Range(1)]] = (256, 256)
    candidates: Literal["shown", "all"] = "shown"
    max_unshown: Annotated[int, Range(1, 10_000)] = 10
    max_gradient_norm: Annotated[float, Range(above=0)] | None = None
    precision: Precision | Literal["auto"] = "float32"

    def __post_init__(self) -> None:
        check_ranges(self)
        encoder_config(self.encoder, self.encoder_settings)  # raises if the name or a setting is unknown


@dataclass(frozen=True)
class Losses:
    """The losses of a batch, and the values to log.

    Attributes:
        minimised: Scalars whose sum is minimised.
        watched: Scalars that are only logged.
        log_likelihood: [K, B] the log-likelihood of the logged clicks or actions under the learner's model.
        weights: Denominators of those watched scalars that are not means over steps.
    """

    minimised: dict[str, Tensor]
    watched: dict[str, Tensor]
    log_likelihood: Tensor
    weights: dict[str, Tensor] = field(default_factory=dict)


class SequentialLearner(GradientLearner):
    """Learns a policy that places one document after the other, from the subclass's losses.

    Attributes:
        precision: The precision of matrix products in training.
    """

    config: SequentialConfig
    cold_start = ""
    precision: Precision

    def build(self, n_features: int, k: int, seed: int, normaliser: Normaliser) -> None:
        """Create the state encoder and the networks of the subclass."""
        config = self.config
        self.max_unshown = config.max_unshown if config.candidates == "all" else 0
        self.precision = "bfloat16" if config.precision == "bfloat16" else "float32"
        self._n_features = n_features
        self._normaliser = normaliser
        with seeded(seed):
            self.encoder = build_encoder(config.encoder, config.encoder_settings, n_features, k)
            networks = {"encoder": (self.encoder, config.encoder_learning_rate), **self.build_networks()}
        self.learn_with(networks, config.max_gradient_norm)

    def learn_from(self, batches: Batches, held_out: Batches | None = None) -> None:
        """Set the batches; with precision = `auto`, choose by the first one."""
        super().learn_from(batches, held_out)
        if self.config.precision == "auto":
            batch = batches.at(0, distributed.part_of(batches.batch_size))
            without = distributed.in_any(not has_bfloat16())
            differ = not without and distributed.in_any(self._rounding(batch) > ROUNDING)
            self.precision = "float32" if without or differ else "bfloat16"
            self._reason = "losses differ" if differ else f"the processor has {'no ' if without else ''}bfloat16"

    def chosen(self) -> dict[str, Any]:
        """The precision, and the reason for it."""
        auto = self.config.precision == "auto"
        return {"precision": {"chosen": self.precision, "reason": self._reason}} if auto else {}

    @abstractmethod
    def build_networks(self) -> dict[str, tuple[nn.Module, float]]:
        """Create the other networks; returns each by name, with its learning rate."""

    @abstractmethod
    def losses(self, episodes: Episodes) -> Losses:
        """The losses to minimise."""

    @abstractmethod
    def live_policy(self) -> SequentialPolicy:
        """The ranking policy made of the very networks that are trained."""

    def policy(self) -> SequentialPolicy:
        """The ranking policy learned so far; later steps do not change it."""
        return self.live_policy().snapshot()

    def start_from(self, start: WarmStart) -> None:
        """Take over the networks of a trained model."""
        self.take_over(start, self.live_policy().networks())

    def after_step(self, losses: Losses) -> None:
        """Called after each optimiser step, for example to update target networks."""

    def update(self, batch: SessionBatch) -> dict[str, float]:
        """Take one step on the losses of a batch."""
        losses, steps = self._losses(batch), batch.where.sum()
        plotted = self.descend(losses.minimised, steps)
        losses = replace(losses, watched=_over_all_processes(losses, steps))
        self.after_step(losses)
        return plotted | {name: value.item() for name, value in losses.watched.items()}

    @torch.no_grad()
    def held_out_scores(self, batch: SessionBatch) -> Tensor:
        """[B] the mean of `Losses.log_likelihood` over the positions of each list."""
        return self._episodes(batch).mean_per_list(self._losses(batch).log_likelihood)

    def pair_network(self) -> PairNetwork:
        """A new network over [state ; document]."""
        return PairNetwork(self.encoder.n_states, self._n_features, self.config.hidden)

    def states(self, episodes: Episodes) -> Tensor:
        """[K, B, S] the state at each step."""
        states: Tensor = self.encoder(episodes.shown)
        return states[:, :-1].transpose(0, 1).contiguous()

    def greedy_policy(self, scorer: PairNetwork, **options: Any) -> SequentialPolicy:
        """The networks as a policy that places the document with the highest score by `scorer`."""
        return SequentialPolicy(self.encoder, scorer, self._normaliser, **options)

    def _losses(self, batch: SessionBatch) -> Losses:
        with torch.autocast("cpu", torch.bfloat16, enabled=self.precision == "bfloat16"):
            return self.losses(self._episodes(batch))

    @torch.no_grad()
    def _rounding(self, batch: SessionBatch) -> float:
        """The largest difference of a loss in bfloat16 products, relative to the largest of the losses."""

        def minimised(precision: Precision) -> Tensor:
            self.precision = precision
            return torch.stack([loss.float() for loss in self._losses(batch).minimised.values()])

        exact, rounded = minimised("float32"), minimised("bfloat16")
        return float((rounded - exact).abs().max() / exact.abs().max().clamp(min=1e-9))

    def _episodes(self, batch: SessionBatch) -> Episodes:
        return Episodes.of(batch, with_unshown=self.config.candidates == "all")


def has_bfloat16() -> bool:
    """Whether the processor multiplies bfloat16 numbers itself; where torch emulates it, it is slower than float32."""
    # Not in every version of torch; `bool()` is False.
    return bool(getattr(torch.cpu, "_is_avx512_bf16_supported", bool)())


def _over_all_processes(losses: Losses, steps: Tensor) -> dict[str, Tensor]:
    """The watched scalars of the whole batch."""
    if not losses.watched:
        return {}
    weights = torch.stack([losses.weights.get(name, steps).float() for name in losses.watched])
    values = distributed.total(torch.stack(list(losses.watched.values())) * distributed.share(weights))
    return dict(zip(losses.watched, values, strict=True))
