"""A policy that places one document after the other, given the state of those above."""

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
from cuolr.networks.layers import PairNetwork, arrays_of, rebuild
from cuolr.policies.policy import POLICIES, NormalisedPolicy
from cuolr.types import Candidates, Ints

# Number of documents scored at a time: enough for efficient products, few enough to stay in the cache.
DOCUMENTS_AT_A_TIME = 8_192

# Scores this close (relative to the best, if that is above 1) are equal: products round differently from row to row,
# which must not order two copies of the same document.
ROUNDING = 1e-6


@POLICIES.register("sequential")
class SequentialPolicy(NormalisedPolicy):
    """R(k) ← a_k ~ π(· | s_k), definition 2, with the state s_k from the encoder, as in training.

    Greedy by default: the document with the highest score, the first of equals. With a seed, a_k is drawn from the
    softmax of the scores.

    Attributes:
        encoder: The state encoder φ.
        scorer: The network that scores a document in a state.
        normaliser: Scales raw features.
        behaviour: A model of the logging policy, if the choice is restricted; see `likely`.
        threshold: Minimum probability of a document under that model, relative to the most probable one.
        seed: Seed for sampling; None = greedy.
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
        """The number of features of the encoder, without indicators of missing values."""
        return self.encoder.n_features - self.normaliser.n_indicators

    def snapshot(self) -> Self:
        """A deep copy, which further training does not change."""
        return copy.deepcopy(self)

    def sampled(self, seed: int) -> Self:
        """The same policy, but a_k is drawn from π, the softmax of the scores."""
        check_arguments(seed=(seed, Range(0)))
        policy = copy.copy(self)
        policy.seed = seed
        return policy

    def of_scaled(self) -> Self:
        """The same policy for documents with scaled features."""
        policy = copy.copy(self)
        policy.normaliser = UNSCALED
        return policy

    def rank(self, candidates: Candidates, k: int) -> Ints:
        """The k best documents of each query, one position after the other."""
        check_arguments(k=(k, Range(1)))
        candidates = self.normaliser.as_fitted(candidates, self.n_features)
        # Drawn for all queries at once, so that rankings do not depend on the batches.
        uniforms = None if self.seed is None else np.random.default_rng(self.seed).random((candidates.n_queries, k))
        ranking = np.full((candidates.n_queries, k), -1, np.int64)
        for queries in batches_by_size(candidates.sizes):
            drawn = None if uniforms is None else torch.from_numpy(uniforms[queries])
            ranking[queries] = self._rank_batch(self.normaliser.apply(candidates.select(queries)), k, drawn)
        return ranking

    @torch.inference_mode()
    def _rank_batch(self, candidates: Candidates, k: int, uniforms: Tensor | None) -> Ints:
        """[B, k] the rankings of scaled candidates."""
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
        for name, network in self.networks().items():
            arrays |= arrays_of(name, network)
        return arrays

    def settings(self) -> dict[str, Any]:
        """The sizes and kinds of the networks."""
        return {
            "encoder": ENCODERS.name_of(type(self.encoder)),
            "encoder_settings": to_dict(self.encoder.config),
            "n_features": self.encoder.n_features,
            "k": self.encoder.k,
            "hidden": [self.scorer.second.in_features, self.scorer.second.out_features],
            "behaviour": self.behaviour is not None,
            "threshold": self.threshold,
            "seed": self.seed,
            **self.normaliser.settings(),
        }

    @classmethod
    def from_parts(cls, arrays: Mapping[str, npt.NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        """Rebuild a policy from its `arrays` and `settings`."""
        n_features, hidden = int(settings["n_features"]), (int(settings["hidden"][0]), int(settings["hidden"][1]))
        threshold, seed = settings["threshold"], settings["seed"]
        check_arguments(threshold=(threshold, Range(0, 1)), seed=(0 if seed is None else seed, Range(0)))

        def new_encoder() -> StateEncoder:
            return build_encoder(settings["encoder"], settings["encoder_settings"], n_features, int(settings["k"]))

        encoder = rebuild("encoder", new_encoder, arrays)

        def new_scorer() -> PairNetwork:
            return PairNetwork(encoder.n_states, n_features, hidden)

        scorer = rebuild("scorer", new_scorer, arrays)
        behaviour = rebuild("behaviour", new_scorer, arrays) if settings["behaviour"] else None
        normaliser = Normaliser.from_parts(arrays, settings)
        return cls(encoder, scorer, normaliser, behaviour, float(threshold), None if seed is None else int(seed))

    def networks(self) -> dict[str, nn.Module]:
        """The networks, by name."""
        networks = {"encoder": self.encoder, "scorer": self.scorer, "behaviour": self.behaviour}
        return {name: network for name, network in networks.items() if network is not None}


def choose(scores: Tensor, considered: Tensor, uniforms: Tensor | None) -> Tensor:
    """[B, N] scores → [B] the highest of the considered ones, the first of equals; or a draw from their softmax.

    Args:
        scores: [B, N] the scores.
        considered: [B, N] true = may be chosen.
        uniforms: [B] random numbers from [0, 1), one per draw; None = the highest.
    """
    possible = _finite(scores).masked_fill(~considered, -torch.inf)
    if uniforms is None:
        best = possible.amax(dim=1, keepdim=True)
        return (possible >= best - ROUNDING * best.abs().clamp(min=1)).byte().argmax(dim=1)
    # If no document is left, any candidate index will do.
    probability = possible.double().softmax(dim=1).nan_to_num(0)
    cumulative = probability.cumsum(dim=1)
    drawn = (cumulative <= uniforms[:, None] * cumulative[:, -1:]).sum(dim=1)
    return drawn.clamp(max=scores.shape[1] - 1)


def _finite(scores: Tensor) -> Tensor:
    """NaN becomes a very low score, but still above documents that may not be chosen."""
    return scores.nan_to_num(nan=-1e30, posinf=1e30, neginf=-1e30)


def likely(scores: Tensor, actions: Tensor, threshold: float, dim: int) -> Tensor:
    """Whether each action has at least `threshold` times the probability of the most probable one, by softmax.

    >>> likely(torch.tensor([0.5, 0.4, 0.1]).log(), torch.tensor([True, True, True]), 0.3, dim=0).tolist()
    [True, True, False]

    Args:
        scores: Scores of the actions, of any shape.
        actions: Same shape, true = possible.
        threshold: Relative probability, from 0 to 1.
        dim: The axis of the actions.
    """
    possible = _finite(scores).masked_fill(~actions, -torch.inf)
    return actions & (possible >= possible.amax(dim=dim, keepdim=True) + torch.tensor(threshold).log())


def batches_by_size(sizes: Ints) -> Iterator[Ints]:
    """Batches of queries of similar size, to limit padding, with at most `DOCUMENTS_AT_A_TIME` documents.

    A longer query is a batch by itself. Queries without documents are left out.
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
