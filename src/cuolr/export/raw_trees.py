"""Trees on scaled features as trees on raw features, also for engines that know no missing values.

Scaling is increasing, so that {x : scaled(x) ≤ t} is the raw values up to some float32 number, which bisection over all
float32 numbers finds exactly: the comparison of every raw value has the same result as before.

In one variant of a feature, a missing value is lower than all others, in the other it is higher. A split takes the
variant that sends missing values to its side, and no tree grows.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from cuolr.data.normalise import Normaliser
from cuolr.export.exporter import CannotHold, PointwiseModel
from cuolr.policies.linear_policy import LinearPolicy
from cuolr.policies.regression_trees import MISSING_LEFT, MISSING_RIGHT, RegressionTrees
from cuolr.policies.trees_policy import TreesPolicy
from cuolr.types import Bools, Doubles, Floats, Ints

LARGEST = float(np.finfo(np.float32).max)
# LightGBM takes numbers up to this for 0 when it predicts.
ZERO = np.float32(1e-35)


def raw_trees(model: PointwiseModel, takes: str = "trees") -> RegressionTrees:
    """All trees of the model on raw features, leaf values multiplied by the weight of their member.

    Thresholds are float32 numbers, or infinite where all values but missing ones go left. All splits say where missing
    values go.

    Args:
        model: The model; raises `CannotHold` if it has other members.
        takes: What the target takes, for the message.
    """
    if model.kinds != {"trees"}:
        raise CannotHold(f"it takes {takes} only, and the model has {model.described}")
    weighted = [
        _weighted(folded(member), weight)
        for member, weight in zip(model.members, model.weights, strict=True)
        if isinstance(member, TreesPolicy)
    ]
    return _smallest_first(_joined(weighted))


def folded(policy: TreesPolicy) -> RegressionTrees:
    """The trees of one ranker on raw features."""
    trees = policy.trees
    pairs, which = np.unique(np.stack([trees.feature, trees.threshold]), axis=1, return_inverse=True)
    highest = highest_raw(policy.normaliser, pairs[0].astype(np.int64), pairs[1])[which.ravel()]
    left = _missing_goes_left(policy.normaliser, trees)
    # Where no value goes left, the sides are exchanged: all values but missing ones go left.
    none = highest == -np.inf
    return replace(
        trees,
        threshold=np.where(none, np.inf, highest),
        kind=np.where(left != none, MISSING_LEFT, MISSING_RIGHT),
        left=np.where(none, trees.right, trees.left),
        right=np.where(none, trees.left, trees.right),
    )


def highest_raw(normaliser: Normaliser, feature: Ints, threshold: Doubles) -> Doubles:
    """[S] the highest raw value whose scaled value is at most the threshold; ±∞ if all values are, or none.

    Args:
        normaliser: Scales raw features.
        feature: [S] the feature of each threshold.
        threshold: [S] thresholds of scaled features.
    """
    scale = _columns(normaliser, feature)

    def goes_left(order: Ints) -> Bools:
        return scale(_float_at(order)).astype(np.float64) <= threshold

    # Among all finite float32 numbers in ascending order, `low` goes left and `high` does not.
    low, high = np.full(len(feature), _order_of(-LARGEST)), np.full(len(feature), _order_of(LARGEST))
    none, everything = ~goes_left(low), goes_left(high)
    while (high - low > 1).any():
        middle = (low + high) // 2
        left = goes_left(middle)
        low, high = np.where(left, middle, low), np.where(left, high, middle)
    found = _float_at(low).astype(np.float64)
    return np.where(none, -np.inf, np.where(everything, np.inf, found))


def _missing_goes_left(normaliser: Normaliser, trees: RegressionTrees) -> Bools:
    """[S] whether a missing value goes left: by the split's own rule, or as 0 or the median does."""
    native = np.isin(trees.kind, (MISSING_LEFT, MISSING_RIGHT))
    as_nan = np.where(native, trees.kind == MISSING_LEFT, trees.threshold >= 0)
    if normaliser.missing is None:
        return as_nan
    median = normaliser.missing.median[trees.feature]
    as_median = _columns(normaliser, trees.feature)(median).astype(np.float64) <= trees.threshold
    return np.where(np.isin(trees.feature, normaliser.missing.indicated), as_nan, as_median)


def _columns(normaliser: Normaliser, feature: Ints) -> Callable[[Floats], Floats]:
    """The policy's own scaling, for one value of each of these features: [S] → [S], as LightGBM sees it."""
    fitted = len(normaliser.low) > 0
    own = replace(
        normaliser,
        low=normaliser.low[feature] if fitted else normaliser.low,
        high=normaliser.high[feature] if fitted else normaliser.high,
        missing=None,
    )

    def scale(values: Floats) -> Floats:
        scaled = own.transform(values[None, :])[0]
        return np.where(np.abs(scaled) <= ZERO, np.float32(0), scaled)

    return scale


def _order_of(value: float) -> int:
    """The rank of a float32 number among all of them; 0 for both zeros."""
    bits = int(np.float32(value).view(np.int32))
    return bits if bits >= 0 else -(bits & 0x7FFFFFFF)


def _float_at(order: Ints) -> Floats:
    """The float32 numbers of these ranks."""
    bits = np.abs(order).astype(np.uint32) | np.where(order < 0, np.uint32(0x80000000), np.uint32(0))
    return bits.astype(np.uint32).view(np.float32)


def _weighted(trees: RegressionTrees, weight: float) -> RegressionTrees:
    return replace(trees, value=trees.value * weight)


def _joined(parts: list[RegressionTrees]) -> RegressionTrees:
    names = ("leaves", "feature", "threshold", "kind", "left", "right", "value")
    arrays = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    return RegressionTrees(parts[0].n_features, **arrays)


def _smallest_first(trees: RegressionTrees) -> RegressionTrees:
    """The trees by their largest value, ascending: engines that add up in float32 then lose least."""
    number = len(trees.leaves)
    of_leaf, of_split = np.repeat(np.arange(number), trees.leaves), np.repeat(np.arange(number), trees.leaves - 1)
    largest = np.zeros(number)
    np.maximum.at(largest, of_leaf, np.abs(trees.value))
    place = np.empty(number, np.int64)
    place[np.argsort(largest, kind="stable")] = np.arange(number)
    splits, leaves = np.argsort(place[of_split], kind="stable"), np.argsort(place[of_leaf], kind="stable")
    return replace(
        trees,
        leaves=trees.leaves[np.argsort(place)],
        value=trees.value[leaves],
        **{name: getattr(trees, name)[splits] for name in ("feature", "threshold", "kind", "left", "right")},
    )


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
