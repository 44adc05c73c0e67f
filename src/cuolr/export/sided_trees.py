"""Trees for engines that know no missing values: a feature has a variant for splits that send missing values left.

In one variant of a feature, a missing value is lower than all others, in the other it is higher. A split takes the
variant that sends missing values to its side, and no tree grows.
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from cuolr.export.exporter import PointwiseModel
from cuolr.export.raw_trees import LARGEST
from cuolr.policies.linear_policy import LinearPolicy
from cuolr.policies.regression_trees import MISSING_LEFT, RegressionTrees
from cuolr.types import Doubles, Floats

Side = Literal["filled", "low", "high"]
# A missing value is the highest number, and the highest threshold is the number before it.
HIGHEST_THRESHOLD = float(np.nextafter(np.float32(LARGEST), np.float32(0)))


@dataclass(frozen=True)
class Variant:
    """A feature with a value for documents that have none.

    Attributes:
        feature: The feature.
        name: Its name in the engine.
        side: Whether a missing value is lower or higher than all others, or `filled`: the median of the training data.
        default: What stands for a missing value.
    """

    feature: int
    name: str
    side: Side
    default: float

    def values(self, features: Floats) -> Floats:
        """[n] the values of documents [n, F]."""
        column = features[:, self.feature]
        return np.where(np.isnan(column), np.float32(self.default), column)


def filled_features(model: PointwiseModel) -> list[Variant]:
    """[F] all features, with the median for missing values; 0 if the model has none."""
    missing = model.normaliser.missing
    medians = np.zeros(model.n_features) if missing is None else missing.median.astype(np.float64)
    named = zip(model.names, medians.tolist(), strict=True)
    return [Variant(j, name, "filled", median) for j, (name, median) in enumerate(named)]


def sided(model: PointwiseModel, trees: RegressionTrees) -> tuple[RegressionTrees, list[Variant]]:
    """Trees on raw features as trees on variants of features; thresholds are finite.

    Args:
        model: The model of the trees.
        trees: Trees on raw features.
    """
    missing, filled = model.normaliser.missing, filled_features(model)
    indicated = np.arange(model.n_features) if missing is None else missing.indicated
    left = trees.kind == MISSING_LEFT
    side = np.where(np.isin(trees.feature, indicated), np.where(left, 1, 2), 0)
    pairs, which = np.unique(np.stack([trees.feature, side]), axis=1, return_inverse=True)
    variants = [
        filled[feature] if not number else _on_side(model, feature, "low" if number == 1 else "high")
        for feature, number in pairs.T.tolist()
    ]
    on_variants = replace(
        trees,
        n_features=max(1, len(variants)),
        feature=which.ravel().astype(np.int64),
        threshold=np.minimum(trees.threshold, HIGHEST_THRESHOLD),
    )
    return on_variants, variants or filled[:1]


def _on_side(model: PointwiseModel, feature: int, side: Side) -> Variant:
    default = -LARGEST if side == "low" else LARGEST
    return Variant(feature, model.derived_name(feature, f"_or_{side}"), side, default)


def linear_weights(model: PointwiseModel) -> Doubles | None:
    """[F + M] the weights of scaled features, if all members are linear."""
    if model.kinds != {"ranksvm"}:
        return None
    members = [member for member in model.members if isinstance(member, LinearPolicy)]
    weights = [weight * m.weights.astype(np.float64) for m, weight in zip(members, model.weights, strict=True)]
    total: Doubles = np.sum(weights, axis=0)
    return total
