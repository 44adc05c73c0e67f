"""What each feature adds to the score of a document, as far as the score is a sum over features."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
import torch

from cuolr.policies.ensemble_policy import EnsemblePolicy
from cuolr.policies.linear_policy import LinearPolicy
from cuolr.policies.network_policy import NetworkPolicy
from cuolr.policies.planned_policy import PlannedPolicy
from cuolr.policies.policy import RankingPolicy, ScaledScoringPolicy
from cuolr.policies.trees_policy import TreesPolicy, load_lightgbm
from cuolr.types import Candidates, Doubles, Floats, Ints

# TreeSHAP takes memory and time by the square of a leaf's depth, some nanoseconds for each document; and the stack.
DEEPEST_LEAF, MOST_PATHS = 200, 3e8
# Points of the path from the mean document to a document.
POINTS = 128


@dataclass(frozen=True)
class NetworkContributions:
    """(x_j − x̄_j) · mean of ∂s/∂x_j on the way from the mean document x̄ to x (Sundararajan et al. 2017).

    They add up to s(x) − s(x̄), but for the error of the mean over `POINTS` midpoints.

    Attributes:
        policy: The network.
    """

    policy: NetworkPolicy

    def explain(self, scaled: Floats) -> Doubles:
        """[n, F] what each feature of scaled documents [n, F + M] adds, relative to the mean of these."""
        documents = torch.from_numpy(np.ascontiguousarray(scaled))
        mean = documents.mean(dim=0)
        step = documents - mean
        shares = (torch.arange(POINTS, dtype=documents.dtype) + 0.5) / POINTS
        points = (mean + shares[:, None, None] * step).flatten(0, 1).requires_grad_()
        (slopes,) = torch.autograd.grad(self.policy.network(points).sum(), points)
        parts = (slopes.reshape(POINTS, *step.shape).mean(dim=0) * step).numpy().astype(np.float64)
        contributions: Doubles = parts[:, : self.policy.n_features]
        missing = self.policy.normaliser.missing
        if missing is not None:
            contributions[:, missing.indicated] += parts[:, self.policy.n_features :]
        return contributions


class TreeContributions:
    """Shapley values of the features of a document, by TreeSHAP (Lundberg et al. 2018, path-dependent).

    They depend on how many documents reach each leaf. A saved model does not have these numbers: they are counted
    again, on documents of the log, and 1 is added to each.
    """

    def __init__(self, policy: TreesPolicy, background: Floats) -> None:
        """Count the leaves.

        Args:
            policy: The trees.
            background: [n, F + M] scaled documents, one or more.
        """
        self._natively = policy.normaliser.natively
        self._threads = policy.threads
        lgb, trees = load_lightgbm(), policy.trees
        plain = lgb.Booster(model_str=trees.lightgbm_text)
        reached = np.asarray(plain.predict(self._natively(background), pred_leaf=True), np.int64)
        reached = reached.reshape(len(background), -1)
        first = np.cumsum(trees.leaves) - trees.leaves
        leaf_count: Ints = 1 + np.bincount((reached + first).ravel(), minlength=len(trees.value))
        self._booster = lgb.Booster(model_str=trees.to_lightgbm(leaf_count))

    def explain(self, scaled: Floats) -> Doubles:
        """[n, F] the part of each feature in the score of scaled documents [n, F + M], relative to the mean score."""
        values = self._booster.predict(self._natively(scaled), pred_contrib=True, num_threads=self._threads)
        contributions: Doubles = np.asarray(values, np.float64)[:, :-1]
        return contributions


# Documents of the log that SHAP values compare with.
BACKGROUND_DOCUMENTS = 2_000


@dataclass(frozen=True)
class FeatureContributions:
    """Scores of documents, as differences from the mean of these documents.

    Attributes:
        score: [n] the score.
        by_feature: [n, F] what each feature adds.
    """

    score: Doubles
    by_feature: Doubles

    @property
    def unexplained(self) -> Doubles:
        """[n] score − Σ by_feature: what is not a sum over features."""
        rest: Doubles = self.score - self.by_feature.sum(axis=1)
        return rest


class Explains(Protocol):
    """A part of the score that is a sum over features."""

    def explain(self, scaled: Floats) -> Doubles:
        """[n, F] what each feature adds to the scores of scaled documents [n, F + M], up to a constant."""


@dataclass(frozen=True)
class LinearContributions:
    """Weight × scaled feature; the indicator of a missing value belongs to its feature."""

    policy: LinearPolicy

    def explain(self, scaled: Floats) -> Doubles:
        """[n, F] what each feature adds."""
        parts = scaled.astype(np.float64) * self.policy.weights
        contributions: Doubles = parts[:, : self.policy.n_features]
        missing = self.policy.normaliser.missing
        if missing is not None:
            contributions[:, missing.indicated] += parts[:, self.policy.n_features :]
        return contributions


@dataclass(frozen=True)
class FeatureExplainer:
    """Explains the scores of a policy.

    Attributes:
        policy: What scores the documents; None = it cannot be explained, because it does not score by features.
        parts: The parts of the score that are sums over features, with their weights.
        opaque: The classes of the others, such as those of plug-ins, and trees that are too deep.
    """

    policy: ScaledScoringPolicy | None
    parts: tuple[tuple[float, Explains], ...] = ()
    opaque: tuple[str, ...] = ()

    @classmethod
    def of(cls, policy: RankingPolicy, candidates: Candidates) -> Self:
        """For a policy, with documents of the log to compare with."""
        scorer = policy.scorer if isinstance(policy, PlannedPolicy) else policy
        if not isinstance(scorer, ScaledScoringPolicy):
            return cls(None)
        background = _background(scorer, candidates)
        parts: list[tuple[float, Explains]] = []
        opaque = []
        for weight, member in _members(scorer):
            if isinstance(member, TreesPolicy) and member.trees.paths(DEEPEST_LEAF) <= MOST_PATHS:
                parts.append((weight, TreeContributions(member, background)))
            elif isinstance(member, LinearPolicy):
                parts.append((weight, LinearContributions(member)))
            elif isinstance(member, NetworkPolicy):
                parts.append((weight, NetworkContributions(member)))
            else:
                opaque.append(type(member).__name__)
        return cls(scorer, tuple(parts), tuple(dict.fromkeys(opaque)))

    def explain(self, of_query: Candidates, documents: list[int]) -> FeatureContributions | None:
        """The scores of some documents of a query, feature by feature.

        Args:
            of_query: All documents of the query: some features are scaled within it.
            documents: The candidate indices of those to explain, one or more.
        """
        if self.policy is None:
            return None
        scaled = _scaled(self.policy, of_query)[documents]
        total = np.zeros((len(documents), self.policy.n_features))
        for weight, part in self.parts:
            total += weight * part.explain(scaled)
        score = self.policy.score_scaled(scaled).astype(np.float64)
        return FeatureContributions(score - score.mean(), total - total.mean(axis=0))

    def feature_names(self, candidates: Candidates) -> list[str]:
        """[F] the names of the features, as the policy orders them."""
        assert self.policy is not None
        known = self.policy.normaliser.feature_names
        names = candidates.feature_names if known is None else known
        return [f"feature {j + 1}" for j in range(self.policy.n_features)] if names is None else names.tolist()

    def values(self, of_query: Candidates, documents: list[int]) -> Floats:
        """[n, F] the features of documents, as the log has them."""
        assert self.policy is not None
        fitted = self.policy.normaliser.as_fitted(of_query, self.policy.n_features)
        values: Floats = fitted.features[documents]
        return values


def _members(policy: ScaledScoringPolicy, weight: float = 1.0) -> Iterator[tuple[float, ScaledScoringPolicy]]:
    """The policies whose weighted scores add up to that of a policy."""
    if not isinstance(policy, EnsemblePolicy):
        yield weight, policy
        return
    for own, member in zip(policy.weights, policy.members, strict=True):
        if own:
            yield from _members(member, weight * own)


def _scaled(policy: ScaledScoringPolicy, candidates: Candidates) -> Floats:
    fitted = policy.normaliser.as_fitted(candidates, policy.n_features)
    return policy.normaliser.transform(fitted.features, fitted.offsets)


def _background(policy: ScaledScoringPolicy, candidates: Candidates) -> Floats:
    """Scaled documents of queries that are evenly spaced over the log."""
    mean = max(candidates.n_documents / max(candidates.n_queries, 1), 1.0)
    number = min(candidates.n_queries, max(1, round(BACKGROUND_DOCUMENTS / mean)))
    queries = np.unique(np.linspace(0, candidates.n_queries - 1, number).astype(np.int64))
    return _scaled(policy, candidates.select(queries))
