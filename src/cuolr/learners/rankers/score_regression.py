"""Regression trees on a score for each document, grown by LightGBM one tree at a time."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cuolr.data.normalise import Normaliser
from cuolr.learners.rankers.base_ranker import BoostedTrees
from cuolr.policies.trees_policy import RANKING_TREES, load_lightgbm
from cuolr.types import Doubles, Floats


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
