"""One step of SAC and CQL, compared with its matrix products alone and with the plain version."""

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from benchmarks.table import Row, torch_threads
from cuolr.data.normalise import Normaliser
from cuolr.learners.rl.sac import SAC
from cuolr.networks.encoder import StateEncoder
from cuolr.networks.layers import follow
from cuolr.training.base_learner import LEARNERS
from cuolr.training.batches import SessionBatch
from tests.learners.rl.plain import plain_losses

BATCH, K, FEATURES, STATE, HIDDEN, HEADS = 256, 10, 136, 2 * 136, 256, 8
REPEATS = 7
THREADS = 2


def run() -> list[Row]:
    """Measure both learners, in float32 and bfloat16."""
    with torch_threads(THREADS):
        return [row for name in ("sac", "cql") for row in _measure(name)]


def _measure(name: str) -> list[Row]:
    batch = _batch()
    learner, plain, thrifty = (_learner(name, "float32") for _ in range(3))
    coarse = _learner(name, "bfloat16")
    every_pair = name == "cql"
    products, coarse_products, step, plain_step, thrifty_step, coarse_step = _least_times(
        [
            Products(every_pair, torch.float32).run,
            Products(every_pair, torch.bfloat16).run,
            lambda: learner.update(batch),
            lambda: _plain_update(plain, batch),
            lambda: _thrifty_update(thrifty, batch),
            lambda: coarse.update(batch),
        ]
    )
    over_products, coarse_over_products = step / products, coarse_step / coarse_products
    over_plain = plain_step / step
    return [
        Row(f"train_step {name}: a step", 1e3 * step, "ms", "", True),
        Row(f"train_step {name}: its matrix products alone", 1e3 * products, "ms", "", True),
        Row(f"train_step {name}: a step over its products", over_products, "×", "≤ 1.5", over_products <= 1.5),
        Row(
            f"train_step {name}: the same in bfloat16", coarse_over_products, "×", "≤ 1.5", coarse_over_products <= 1.5
        ),
        Row(f"train_step {name}: speed over the plain version", over_plain, "×", "≥ 4", over_plain >= 4),
        Row(f"train_step {name}: speed over one that encodes each state once", thrifty_step / step, "×", "", True),
        Row(f"train_step {name}: speed of bfloat16 over float32", step / coarse_step, "×", "", True),
    ]


def _batch() -> SessionBatch:
    generator = torch.Generator().manual_seed(1)
    return SessionBatch(
        features=2 * torch.rand(BATCH, K, FEATURES, generator=generator) - 1,
        rewards=(torch.rand(BATCH, K, generator=generator) < 0.2).float(),
        where=torch.ones(BATCH, K, dtype=torch.bool),
        weight=torch.ones(BATCH),
    )


def _learner(name: str, precision: str) -> SAC:
    learner = LEARNERS.get(name)
    config = replace(learner.Config(), precision=precision)
    new = learner(config)
    assert isinstance(new, SAC)
    new.build(FEATURES, K, 0, Normaliser("none", np.empty(0), np.empty(0)))
    return new


def _plain_update(learner: SAC, batch: SessionBatch) -> None:
    """The same step with the losses written position by position."""
    learner.descend(plain_losses(learner, batch), batch.where.sum())
    follow(learner.networks["targets"], learner.networks["critics"], learner.config.target_rate)


def _thrifty_update(learner: SAC, batch: SessionBatch) -> None:
    """The plain step, but with each state encoded once instead of by each loss."""
    encoder = learner.encoder
    learner.encoder = Remembering(encoder)
    _plain_update(learner, batch)
    learner.encoder = encoder


class Remembering(StateEncoder):
    """An encoder that caches the states of a list; lists of the same length are the same list."""

    def __init__(self, encoder: StateEncoder) -> None:
        super().__init__(encoder.config, encoder.n_features, encoder.k)
        self.encoder = encoder
        self.states: dict[int, Tensor] = {}

    def forward(self, shown: Tensor) -> Tensor:
        """[B, T, F] → [B, T + 1, S]."""
        if shown.shape[1] not in self.states:
            self.states[shown.shape[1]] = self.encoder(shown)
        return self.states[shown.shape[1]]


class Products:
    """The matrix products of a step, and nothing else.

    Each network goes once over the pairs of a state and a document that can occur and that the algorithm needs, with
    its first layer split, so that a state and a document are projected once; and back where it learns.
    """

    def __init__(self, every_pair_teaches: bool, precision: torch.dtype) -> None:
        states, pairs, next_pairs = K * BATCH, BATCH * K * (K + 1) // 2, BATCH * K * (K - 1) // 2
        taught = pairs if every_pair_teaches else states
        tokens = (K + 1) * BATCH
        runs = [
            *_layer(tokens, STATE, 3 * STATE, back=tokens, input_gradient=False),
            *_attention(),
            *_layer(tokens, STATE, STATE, back=tokens),
            *_network(states, pairs, back=(states, pairs)),
            *(2 * _network(states, pairs, back=(states, taught))),
            *(2 * _network(states - BATCH, next_pairs, back=None)),
        ]
        self._runs = [(left.to(precision), right.to(precision)) for left, right in runs]

    def run(self) -> None:
        """All products once."""
        for left, right in self._runs:
            torch.matmul(left, right)


def _network(states: int, pairs: int, back: tuple[int, int] | None) -> list[tuple[Tensor, Tensor]]:
    """A network over a number of states, documents and pairs of them."""
    back_states, back_pairs = back or (0, 0)
    return [
        *_layer(states, STATE, HIDDEN, back=back_states),
        *_layer(states, FEATURES, HIDDEN, back=back_states, input_gradient=False),
        *_layer(pairs, HIDDEN, HIDDEN, back=back_pairs),
        *_layer(pairs, HIDDEN, 1, back=back_pairs),
    ]


def _layer(rows: int, inputs: int, outputs: int, back: int, input_gradient: bool = True) -> list[tuple[Tensor, Tensor]]:
    """Forward, and for `back` of the rows the gradient of the weights and, if needed, of the inputs."""
    x, weight, gradient = torch.randn(rows, inputs), torch.randn(outputs, inputs), torch.randn(back, outputs)
    products = [(x, weight.T)]
    if back:
        products.append((gradient.T, x[:back]))
    if back and input_gradient:
        products.append((gradient, weight))
    return products


def _attention() -> list[tuple[Tensor, Tensor]]:
    """Queries by keys and weights by values, and back."""
    wide, square = torch.randn(BATCH * HEADS, K + 1, STATE // HEADS), torch.randn(BATCH * HEADS, K + 1, K + 1)
    return 3 * [(wide, wide.transpose(1, 2)), (square, wide)]


def _least_times(calls: list[Callable[[], object]]) -> list[float]:
    """The shortest time of each call in seconds, in turns, so that a busy moment affects all of them."""
    least = [float("inf")] * len(calls)
    for _ in range(REPEATS):
        for i, call in enumerate(calls):
            start = time.perf_counter()
            call()
            least[i] = min(least[i], time.perf_counter() - start)
    return least
