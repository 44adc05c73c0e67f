"""A student, fitted to the ratings of a teacher: trees, a linear model or a small network."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np
import torch

from cuolr.config import Range, check_ranges
from cuolr.data.normalise import Normaliser
from cuolr.learners.rankers.base_ranker import BoostedTrees
from cuolr.learners.rankers.linear import LinearRanker
from cuolr.learners.rankers.network import NetworkConfig, NetworkRanker
from cuolr.learners.rankers.targets import Targets, TargetSampler
from cuolr.networks.layers import seeded
from cuolr.policies.linear_policy import LinearPolicy
from cuolr.policies.planned_policy import PlannedPolicy
from cuolr.policies.policy import NormalisedPolicy, RankingPolicy, ScaledScoringPolicy
from cuolr.policies.regression_trees import MAX_TREES
from cuolr.policies.trees_policy import RANKING_TREES, TreesPolicy, load_lightgbm
from cuolr.progress import Progress, no_progress
from cuolr.training.training_config import MAX_SEED, TrainingConfig
from cuolr.types import Candidates, Doubles, Floats


@dataclass(frozen=True)
class ScoredDocuments:
    """Documents with the score that a ranker should give them.

    Attributes:
        features: [n, F] scaled.
        score: [n].
        weight: [n] of each document in the mean loss.
    """

    features: Floats
    score: Doubles
    weight: Doubles


class ScoreRegressionTrees(BoostedTrees):
    """Minimises the weighted mean of (s − y)² over documents, by gradient boosting (Friedman 2001)."""

    def __init__(self, documents: ScoredDocuments, parameters: Mapping[str, Any], normaliser: Normaliser) -> None:
        """Create a ranker without trees.

        Args:
            documents: The documents to train on.
            parameters: LightGBM's parameters.
            normaliser: The normaliser that scaled the features, kept in the policy.
        """
        super().__init__(int(parameters["num_threads"]), normaliser)
        lgb, of_trees = load_lightgbm(), {**RANKING_TREES, **parameters, "objective": "regression"}
        features = normaliser.natively(documents.features)
        dataset = lgb.Dataset(features, documents.score, weight=documents.weight, params=of_trees)
        self._booster = lgb.Booster(of_trees, dataset)

    @property
    def booster(self) -> Any:
        """LightGBM's booster."""
        return self._booster

    def grow(self) -> None:
        """Grow one more tree."""
        self._booster.update()


StudentKind = Literal["trees", "linear", "network"]


@dataclass(frozen=True)
class StudentConfig:
    """Settings of a student.

    Attributes:
        trees: Number of trees.
        leaves: Maximum number of leaves per tree.
        tree_learning_rate: Shrinkage of each tree.
        min_documents_per_leaf: Minimum number of documents in a leaf.
        feature_fraction: Fraction of the features that are sampled for each tree.
        steps: Number of gradient steps of a linear model or a network.
        lists_per_step: Number of lists in a gradient step.
        hidden: Sizes of the hidden layers of a network.
        learning_rate: Learning rate of a network.
        linear_learning_rate: Learning rate of a linear model.
        max_documents: Maximum number of documents to learn from; if exceeded, queries are subsampled.
        held_out: Share of the queries that measure the agreement with the teacher.
        seed: The same seed gives the same student.
    """

    trees: Annotated[int, Range(1, MAX_TREES - 1)] = 400
    leaves: Annotated[int, Range(2)] = 15
    tree_learning_rate: Annotated[float, Range(1e-9, 1)] = 0.1
    min_documents_per_leaf: Annotated[int, Range(1)] = 20
    feature_fraction: Annotated[float, Range(0.01, 1)] = 0.5
    steps: Annotated[int, Range(1)] = 1_000
    lists_per_step: Annotated[int, Range(1)] = 32
    hidden: tuple[Annotated[int, Range(1)], ...] = (64, 32)
    learning_rate: Annotated[float, Range(0, 1)] = 1e-3
    linear_learning_rate: Annotated[float, Range(0, 1)] = 1e-2
    max_documents: Annotated[int, Range(1)] = 100_000
    held_out: Annotated[float, Range(above=0, below=1)] = 0.1
    seed: Annotated[int, Range(0, MAX_SEED)] = 1

    def __post_init__(self) -> None:
        check_ranges(self)


def is_fast(policy: RankingPolicy) -> bool:
    """Whether a policy is a single ranker of trees or a linear one, so that a student would gain nothing."""
    return isinstance(policy, TreesPolicy | LinearPolicy)


def fit_student(
    kind: StudentKind,
    teacher: RankingPolicy,
    candidates: Candidates,
    ratings: Doubles,
    config: StudentConfig = StudentConfig(),
    progress: Progress = no_progress,
) -> ScaledScoringPolicy:
    """A point-wise ranker whose scores are those of the teacher, but for a constant in each query.

    Trees regress the ratings and compare raw features. Linear models and networks minimise −Σ_k y_k log softmax(s)_k,
    where y is the softmax of the query's ratings; the loss is least at s = ratings + a constant.

    Args:
        kind: What the student is.
        teacher: Gives the names and the recipe of the features, and their scaling.
        candidates: The documents to learn from.
        ratings: [n_documents] as `teacher_scores` gives them.
        config: Settings of the student.
        progress: Called with 1 after each step.
    """
    normaliser = _normaliser_of(teacher, candidates)
    if kind == "trees":
        # Trees only compare values of one feature, and scaling takes as long as their evaluation.
        normaliser = replace(normaliser, kind="none", low=np.empty(0), high=np.empty(0))
    n_features = teacher.n_features or candidates.n_features
    fitted = normaliser.as_fitted(candidates, n_features)
    scaled = normaliser.transform(fitted.features, fitted.offsets)
    if kind == "trees":
        return _trees(scaled, ratings, normaliser, config, progress)
    return _by_gradient(kind, fitted, scaled, ratings, normaliser, config, progress)


def _normaliser_of(teacher: RankingPolicy, candidates: Candidates) -> Normaliser:
    """The normaliser of the teacher, with the names and the recipe of its features; a new one if it has none."""
    if isinstance(teacher, PlannedPolicy):
        return _normaliser_of(teacher.scorer, candidates)
    if isinstance(teacher, NormalisedPolicy):
        return teacher.normaliser
    return Normaliser.fit(TrainingConfig().normalising, candidates)


def _trees(
    scaled: Floats, ratings: Doubles, normaliser: Normaliser, config: StudentConfig, progress: Progress
) -> TreesPolicy:
    parameters = {
        "num_leaves": config.leaves,
        "learning_rate": config.tree_learning_rate,
        "min_data_in_leaf": config.min_documents_per_leaf,
        "feature_fraction": config.feature_fraction,
        "num_threads": 1,
        "seed": config.seed,
    }
    ranker = ScoreRegressionTrees(ScoredDocuments(scaled, ratings, np.ones(len(ratings))), parameters, normaliser)
    for _ in range(config.trees):
        ranker.step()
        progress(1)
    return ranker.policy()


def _by_gradient(
    kind: StudentKind,
    candidates: Candidates,
    scaled: Floats,
    ratings: Doubles,
    normaliser: Normaliser,
    config: StudentConfig,
    progress: Progress,
) -> ScaledScoringPolicy:
    targets = _targets(candidates, scaled, ratings)
    batch_of = TargetSampler(targets, np.arange(len(targets)), config.lists_per_step, config.seed)
    width = scaled.shape[1]
    with seeded(config.seed):
        ranker = (
            LinearRanker(width, config.linear_learning_rate, 1.0, normaliser, batch_of)
            if kind == "linear"
            else NetworkRanker(width, NetworkConfig(config.hidden, config.learning_rate), normaliser, batch_of)
        )
    for _ in range(config.steps):
        ranker.step()
        progress(1)
    if kind == "linear":
        # Without the constant, which does not affect the ranking; ranks without torch.
        return LinearPolicy(ranker.network.output.weight.detach().numpy()[0].copy(), normaliser)
    return ranker.policy()


def _targets(candidates: Candidates, scaled: Floats, ratings: Doubles) -> Targets:
    """The softmax of the ratings of each query."""
    rows, where = candidates.padded_rows(np.arange(candidates.n_queries))
    padding = np.zeros((1, scaled.shape[1]), np.float32)
    rated = torch.from_numpy(np.where(where, ratings[rows], -np.inf))
    return Targets(
        features=torch.from_numpy(np.concatenate([scaled, padding])),
        documents=torch.from_numpy(np.where(where, rows, len(scaled))),
        where=torch.from_numpy(where),
        target=rated.softmax(dim=1).float(),
        weight=torch.ones(len(where)),
    )
