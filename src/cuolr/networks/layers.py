"""The networks of the learners, the update of target networks, and softmax over masked documents."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, TypeVar

import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn.functional import linear, pad

N = TypeVar("N", bound=nn.Module)

# Documents that are scored at a time if there are many, to bound memory.
DOCUMENTS_AT_A_TIME = 1 << 11


class PairNetwork(nn.Module):
    """Scores a document in a state: two hidden ReLU layers over [state ; document], section 5.1.

    The first layer is linear in both, W [s ; d] + b = W_s s + (W_d d + b), so each state and each document is projected
    only once, not once per pair.
    """

    def __init__(self, n_states: int, n_features: int, hidden: tuple[int, int]) -> None:
        super().__init__()
        self.n_states = n_states
        self.first = nn.Linear(n_states + n_features, hidden[0])
        self.second = nn.Linear(hidden[0], hidden[1])
        self.output = nn.Linear(hidden[1], 1)

    def forward(self, states: Tensor, documents: Tensor) -> Tensor:
        """[…, S] states and [..., F] documents → […] scores, broadcast."""
        return self.score(self.project_states(states), self.project_documents(documents))

    def project_states(self, states: Tensor) -> Tensor:
        """[…, S] → […, H]: W_s s."""
        return linear(states, self.first.weight[:, : self.n_states])

    def project_documents(self, documents: Tensor) -> Tensor:
        """[…, F] → […, H]: W_d d + b."""
        return linear(documents, self.first.weight[:, self.n_states :], self.first.bias)

    def score(self, states: Tensor, documents: Tensor) -> Tensor:
        """[…, H] projected states and [..., H] projected documents → […] scores, broadcast."""
        hidden = self.second((states + documents).relu_()).relu_()
        scores: Tensor = self.output(hidden).squeeze(-1)
        return scores.float()

    def remaining(self, states: Tensor, documents: Tensor) -> Tensor:
        """The score of each remaining document in each state.

        Args:
            states: [T, B, S] the states.
            documents: [N, B, F] the documents; those from t on remain in state t.

        Returns:
            [T, N, B] the scores; 0 for documents before t.
        """
        if not len(states):
            return documents.new_zeros(0, *documents.shape[:2])
        left = self.project_documents(documents)
        scores = []
        # State by state, because the remaining documents are then a slice: the backward pass of an index is slow.
        # Each slice is taken from the one before, so that gradients accumulate slice by slice, too.
        for t, state in enumerate(self.project_states(states)):
            scores.append(pad(self.score(state, left), (0, 0, t, 0)))
            left = left[1:]
        return torch.stack(scores)


class DocumentNetwork(nn.Module):
    """Scores a document independently of others: hidden ReLU layers and one output."""

    def __init__(self, n_features: int, hidden: tuple[int, ...]) -> None:
        super().__init__()
        self.n_features = n_features
        self.hidden = hidden
        sizes = (n_features, *hidden)
        self.layers = nn.ModuleList(nn.Linear(wide, narrow) for wide, narrow in pairwise(sizes))
        self.output = nn.Linear(sizes[-1], 1)

    def forward(self, documents: Tensor) -> Tensor:
        """[…, F] documents → […] scores."""
        for layer in self.layers:
            documents = layer(documents).relu_()
        scores: Tensor = self.output(documents).squeeze(-1)
        return scores

    def in_parts(self, documents: Tensor) -> Tensor:
        """[n, F] documents → [n] scores, with the hidden layers of some documents at a time."""
        # The last part is not a small one: products of few rows round differently.
        sizes = [DOCUMENTS_AT_A_TIME] * (len(documents) // DOCUMENTS_AT_A_TIME - 1)
        return torch.cat([self(part) for part in torch.split(documents, [*sizes, len(documents) - sum(sizes)])])


@torch.no_grad()
def follow(targets: nn.Module, networks: nn.Module, rate: float) -> None:
    """Soft update θ′ ← θ′ + τ (θ − θ′)."""
    for target, parameter in zip(targets.parameters(), networks.parameters(), strict=True):
        target.lerp_(parameter, rate)


def arrays_of(name: str, network: nn.Module) -> dict[str, npt.NDArray[Any]]:
    """The parameters of a network as arrays, by `name.parameter`."""
    return {f"{name}.{parameter}": tensor.detach().numpy() for parameter, tensor in network.state_dict().items()}


def rebuild(name: str, build: Callable[[], N], arrays: Mapping[str, npt.NDArray[Any]]) -> N:
    """The network with the parameters that `arrays_of` returned.

    Args:
        name: As given to `arrays_of`.
        build: Creates a network of that size; called a first time without memory for parameters, to compare their
            shapes, because the sizes in a file of unknown origin may be any numbers.
        arrays: The parameters.

    Raises:
        ValueError: If a parameter is missing, unexpected, of another shape or type, or not finite.
    """
    prefix = f"{name}."
    own = {key.removeprefix(prefix): values for key, values in arrays.items() if key.startswith(prefix)}
    with torch.device("meta"):
        expected = {key: _described(tensor.shape, tensor.dtype) for key, tensor in build().state_dict().items()}
    loaded = {key: torch.from_numpy(values.copy()) for key, values in own.items()}
    found = {key: _described(tensor.shape, tensor.dtype) for key, tensor in loaded.items()}
    if found != expected:
        key = min(key for key in {*expected, *found} if expected.get(key) != found.get(key))
        raise ValueError(f"{prefix}{key}: expected {expected.get(key, 'none')}, found {found.get(key, 'none')}")
    if not all(tensor.isfinite().all() for tensor in loaded.values()):
        raise ValueError(f"{name}: expected finite parameters")
    with seeded(0):
        network = build()
    network.load_state_dict(loaded)
    return network


def _described(shape: torch.Size, dtype: torch.dtype) -> str:
    return f"{str(dtype).removeprefix('torch.')} {list(shape)}"


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Networks created inside depend only on the seed; torch's random state is restored afterwards."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield


def log_softmax(scores: Tensor, where: Tensor) -> Tensor:
    """The logarithm of the softmax over the real items of the second axis; 0 for the others.

    If no item is real, all are 0.

    Args:
        scores: [A, N, …] the scores.
        where: [A, N, …] true = real.
    """
    return _least_for_others(scores, where).log_softmax(dim=1).masked_fill(~where, 0)


def logsumexp(scores: Tensor, where: Tensor) -> Tensor:
    """[A, …] log Σ exp(score) over the real items of the second axis; very low if there are none.

    Args:
        scores: [A, N, …] the scores.
        where: [A, N, …] true = real.
    """
    return _least_for_others(scores, where).logsumexp(dim=1)


def _least_for_others(scores: Tensor, where: Tensor) -> Tensor:
    # Not −∞, which would give NaN, and NaN gradients, for a row without real items.
    return scores.masked_fill(~where, torch.finfo(scores.dtype).min)
