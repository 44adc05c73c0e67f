"""Documents on which an exported model is compared with its policy: random ones, and those next to every threshold."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from cuolr.data.normalise import Normaliser
from cuolr.export.raw_trees import LARGEST
from cuolr.policies.regression_trees import RegressionTrees
from cuolr.types import Doubles, Floats

# Share of missing values, and of values far beyond the range of the training data.
MISSING_SHARE, FAR_SHARE = 0.05, 0.05
# Where all values but missing ones go left, this one does.
FAR = 1e38
SPLITS_AT_A_TIME = 4_096
# The threshold, the numbers above and below it, and a missing value.
PROBES_PER_SPLIT = 4


@dataclass(frozen=True)
class FeatureRange:
    """The range of raw features.

    Attributes:
        low: [F] the lowest value in training, as far as it is known.
        high: [F] the highest.
        bounded: Whether scores stay bounded however far a value is outside.
    """

    low: Doubles
    high: Doubles
    bounded: bool

    @classmethod
    def of(cls, normaliser: Normaliser, n_features: int, grown: Sequence[RegressionTrees] = ()) -> Self:
        """That of the training data if features are scaled by it; otherwise of medians and thresholds of trees."""
        if len(normaliser.low):
            low, high = normaliser.low, normaliser.high
            if normaliser.kind == "log-min-max":
                low, high = (np.copysign(np.expm1(np.abs(bound)), bound) for bound in (low, high))
            return cls(low, high, bounded=True)
        middle = np.zeros(n_features) if normaliser.missing is None else normaliser.missing.median.astype(np.float64)
        width = np.maximum(np.abs(middle), 1)
        low, high = middle - width, middle + width
        for trees in grown:
            finite = np.isfinite(trees.threshold)
            np.minimum.at(low, trees.feature[finite], trees.threshold[finite])
            np.maximum.at(high, trees.feature[finite], trees.threshold[finite])
        return cls(low, high, bounded=False)


def random_documents(values: FeatureRange, number: int, rng: np.random.Generator, with_missing: bool) -> Floats:
    """[n, F] raw documents from the range of the training data and beyond.

    Args:
        values: The range.
        number: n.
        rng: Random generator.
        with_missing: Whether some values are missing.
    """
    low, high = values.low, values.high
    shape, middle = (number, len(low)), (low + high) / 2
    width = np.maximum(high - low, np.maximum(np.abs(low), np.abs(high)) * 1e-3)
    width = np.where(width > 0, width, 1)
    found = middle + (rng.random(shape) * 2 - 1) * width
    # Raw features are often whole numbers, and often most of them are close together.
    kind = rng.random(shape)
    found = np.where(kind < 0.2, np.round(found), found)
    found = np.where(kind > 0.8, middle + (found - middle) * rng.random(shape) ** 4, found)
    far = np.array([-1e30, -1e6, 0, 1e6, 1e30]) if values.bounded else np.array([-2.0, 0, 2.0])
    beyond = rng.choice(far, shape) * (1 if values.bounded else width)
    found = np.where(rng.random(shape) < FAR_SHARE, beyond, found)
    documents = np.clip(found, -LARGEST, LARGEST).astype(np.float32)
    if with_missing:
        documents[rng.random(shape) < MISSING_SHARE] = np.nan
    return documents


def threshold_documents(trees: RegressionTrees, base: Floats) -> Iterator[Floats]:
    """Documents [n, F] that reach every split, with its feature at the threshold, ± 1 ulp, and missing.

    Args:
        trees: Trees on raw features.
        base: [m, F] documents without missing values, for the features that are not on the way to a split.
    """
    found = []
    for number, way in enumerate(_ways(trees)):
        document = base[number % len(base)].copy()
        *above, (feature, _, high) = way
        for other, lowest, highest in above:
            document[other] = _within(document[other], lowest, highest)
        threshold = np.float32(min(high, FAR))
        for value in (threshold, _next(threshold, 1), _next(threshold, -1), np.float32(np.nan)):
            changed = document.copy()
            changed[feature] = value
            found.append(changed)
        if len(found) >= PROBES_PER_SPLIT * SPLITS_AT_A_TIME:
            yield np.stack(found)
            found = []
    if found:
        yield np.stack(found)


def _within(value: np.float32, low: float, high: float) -> np.float32:
    """The value, moved into (low, high] if need be; missing if only missing values are there."""
    if low >= LARGEST:
        return np.float32(np.nan)
    return np.float32(np.clip(value, _next(np.float32(max(low, -LARGEST)), 1), min(high, LARGEST)))


def _next(value: np.float32, direction: int) -> np.float32:
    """The next float32 number, which stays finite."""
    return np.float32(np.nextafter(value, np.float32(direction * LARGEST)))


def _ways(trees: RegressionTrees) -> Iterator[list[tuple[int, float, float]]]:
    """For each split, the intervals (low, high] of the features above it; last, its own feature with its threshold."""
    first = 0
    for leaves in trees.leaves.tolist():
        bounds: dict[int, dict[int, tuple[float, float]]] = {0: {}}
        for own in range(leaves - 1):
            split = first + own
            feature, threshold = int(trees.feature[split]), float(trees.threshold[split])
            above = bounds.pop(own)
            low, high = above.get(feature, (-np.inf, np.inf))
            yield [(other, *ends) for other, ends in above.items()] + [(feature, low, threshold)]
            for child, ends in (
                (int(trees.left[split]), (low, min(high, threshold))),
                (int(trees.right[split]), (max(low, threshold), high)),
            ):
                if child >= 0:
                    bounds[child] = {**above, feature: ends}
        first += leaves - 1
