"""A policy that places one document after the other, each by the state that those above it make."""

import copy
from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from cuolr.config import Range, check_arguments, to_dict
from cuolr.data.normalise import UNSCALED, Normaliser
from cuolr.networks.encoder import ENCODERS, StateEncoder, build_encoder
from cuolr.networks.layers import PairNetwork, arrays_of, load_arrays, seeded
from cuolr.policies.policy import POLICIES, RankingPolicy
from cuolr.types import Candidates, Ints

# Documents that are scored together: enough to keep the products busy, few enough to stay in the cache.
DOCUMENTS_AT_A_TIME = 8_192

# Scores this close, relative to the best where that is above 1, are equal: sums of a product are rounded differently
# from row to row, and the same document twice must not be ordered by that.
ROUNDING = 1e-6


@POLICIES.register("sequential")
class SequentialPolicy(RankingPolicy):
    """R(k) ← a_k ~ π(· | s_k), definition 2, with the state s_k from the encoder, as in training.

    Greedy by default: the document with the highest score, the first of equals. With a seed, a_k is drawn from the
    softmax of the scores.

    Attributes:
        encoder: φ.
        scorer: Scores a document in a state.
        normaliser: Scales raw features.
        behaviour: With a threshold above 0, a model of the logger; see `likely`.
        threshold: How likely the logger must be to place a document, relative to its favourite.
        seed: None = greedy.
    """

    def __init__(
        self,
        encoder: StateEncoder,
        scorer: PairNetwork,
        normaliser: Normaliser,
        behaviour: PairNetwork | None = None,
        threshold: float = 0.0,
        seed: int | None = None,
    ) -> None:
        self.encoder = encoder
        self.scorer = scorer
        self.normaliser = normaliser
        self.behaviour = behaviour
        self.threshold = threshold
        self.seed = seed

    @property
    def n_features(self) -> int:
        """Of the encoder."""
        return self.encoder.n_features

    def snapshot(self) -> Self:
        """A copy that shares no network with this one, so that training goes on without changing it."""
        return copy.deepcopy(self)

    def sampled(self, seed: int) -> Self:
        """The same policy with a_k drawn from π, the softmax of the scores, instead of the best."""
        check_arguments(seed=(seed, Range(0)))
        policy = copy.copy(self)
        policy.seed = seed
        return policy

    def of_scaled(self) -> Self:
        """The same policy for documents whose features are scaled already."""
        policy = copy.copy(self)
        policy.normaliser = UNSCALED
        return policy

    def rank(self, candidates: Candidates, k: int) -> Ints:
        """The k best documents of each query, one position after the other."""
        check_arguments(k=(k, Range(1)))
        candidates = self.normaliser.as_fitted(candidates, self.n_features)
        # Drawn for all queries at once, so that the batches do not matter.
        uniforms = None if self.seed is None else np.random.default_rng(self.seed).random((candidates.n_queries, k))
        ranking = np.full((candidates.n_queries, k), -1, np.int64)
        for queries in batches_by_size(candidates.sizes):
            drawn = None if uniforms is None else torch.from_numpy(uniforms[queries])
            ranking[queries] = self._rank_batch(self.normaliser.apply(candidates.select(queries)), k, drawn)
        return ranking

    @torch.inference_mode()
    def _rank_batch(self, candidates: Candidates, k: int, uniforms: Tensor | None) -> Ints:
        """[B, k] for candidates that are scaled already."""
        rows, where = candidates.padded_rows(np.arange(candidates.n_queries))
        documents, left, place = torch.from_numpy(candidates.features), torch.from_numpy(where), torch.from_numpy(rows)
        networks = [self.scorer] if self.behaviour is None else [self.scorer, self.behaviour]
        projected = [network.project_documents(documents)[place] for network in networks]
        n_queries, longest = where.shape
        every_query = torch.arange(n_queries)
        length = min(k, longest)
        ranking = torch.full((n_queries, k), -1)
        shown = torch.empty(n_queries, length, candidates.n_features)
        for t in range(length):
            state = self.encoder(shown[:, :t])[:, -1:]
            scores = [n.score(n.project_states(state), p) for n, p in zip(networks, projected, strict=True)]
            considered = left if self.behaviour is None else likely(scores[1], left, self.threshold, dim=1)
            chosen = choose(scores[0], considered, None if uniforms is None else uniforms[:, t])
            ranking[:, t] = chosen.where(left.any(dim=1), -1)
            shown[:, t] = documents[place[every_query, chosen]]
            left[every_query, chosen] = False
        return ranking.numpy()

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The weights of each network, and the range of each feature."""
        arrays = self.normaliser.arrays()
        for name, network in self._networks().items():
            arrays |= arrays_of(name, network)
        return arrays

    def settings(self) -> dict[str, Any]:
        """The sizes and kinds of the networks."""
        return {
            "encoder": ENCODERS.name_of(type(self.encoder)),
            "encoder_settings": to_dict(self.encoder.config),
            "n_features": self.n_features,
            "k": self.encoder.k,
            "hidden": [self.scorer.second.in_features, self.scorer.second.out_features],
            "behaviour": self.behaviour is not None,
            "threshold": self.threshold,
            "seed": self.seed,
            **self.normaliser.settings(),
        }

    @classmethod
    def from_parts(cls, arrays: Mapping[str, npt.NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        """The policy that `arrays` and `settings` were taken from."""
        n_features, hidden = int(settings["n_features"]), (int(settings["hidden"][0]), int(settings["hidden"][1]))
        with seeded(0):
            encoder = build_encoder(settings["encoder"], settings["encoder_settings"], n_features, int(settings["k"]))
            scorer = PairNetwork(encoder.n_states, n_features, hidden)
            behaviour = PairNetwork(encoder.n_states, n_features, hidden) if settings["behaviour"] else None
        normaliser = Normaliser.from_parts(arrays, settings)
        policy = cls(encoder, scorer, normaliser, behaviour, settings["threshold"], settings["seed"])
        for name, network in policy._networks().items():
            load_arrays(name, network, arrays)
        return policy

    def _networks(self) -> dict[str, nn.Module]:
        networks = {"encoder": self.encoder, "scorer": self.scorer, "behaviour": self.behaviour}
        return {name: network for name, network in networks.items() if network is not None}


def choose(scores: Tensor, considered: Tensor, uniforms: Tensor | None) -> Tensor:
    """[B, N] scores → [B] the highest among those that are considered, the first of equals; or drawn by softmax.

    Args:
        scores: [B, N].
        considered: [B, N] true = may be chosen.
        uniforms: [B] from [0, 1), one draw each; None = the highest.
    """
    # A score that is not a number is very low, but still above what may not be chosen.
    finite = scores.nan_to_num(nan=-1e30, posinf=1e30, neginf=-1e30)
    possible = finite.masked_fill(~considered, -torch.inf)
    if uniforms is None:
        best = possible.amax(dim=1, keepdim=True)
        return (possible >= best - ROUNDING * best.abs().clamp(min=1)).byte().argmax(dim=1)
    # Where no document is left, any candidate index will do.
    probability = possible.double().softmax(dim=1).nan_to_num(0)
    cumulative = probability.cumsum(dim=1)
    drawn = (cumulative <= uniforms[:, None] * cumulative[:, -1:]).sum(dim=1)
    return drawn.clamp(max=scores.shape[1] - 1)


def likely(scores: Tensor, actions: Tensor, threshold: float, dim: int) -> Tensor:
    """Which actions have at least `threshold` times the probability of the most probable one, under softmax(scores).

    >>> likely(torch.tensor([0.5, 0.4, 0.1]).log(), torch.tensor([True, True, True]), 0.3, dim=0).tolist()
    [True, True, False]

    Args:
        scores: Of any shape.
        actions: Of the same shape, true = possible.
        threshold: From 0 to 1.
        dim: Along which the actions lie.
    """
    possible = scores.masked_fill(~actions, -torch.inf)
    return actions & (possible >= possible.amax(dim=dim, keepdim=True) + torch.tensor(threshold).log())


def batches_by_size(sizes: Ints) -> Iterator[Ints]:
    """Queries of similar size together, so that padding is little, at most `DOCUMENTS_AT_A_TIME` unless one is longer.

    Queries without documents are in none.
    """
    order = np.argsort(sizes, kind="stable")
    order = order[sizes[order] > 0]
    start = 0
    while start < len(order):
        # The last query of a batch is its longest.
        following = sizes[order[start : start + DOCUMENTS_AT_A_TIME]]
        padded = following * np.arange(1, len(following) + 1)
        end = start + max(1, int(np.searchsorted(padded, DOCUMENTS_AT_A_TIME, side="right")))
        yield order[start:end]
        start = end
