"""Whether an exported model gives the scores of its policy, on random documents and those next to every threshold."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from cuolr.data.normalise import Normaliser
from cuolr.errors import InputError
from cuolr.export.exporter import PointwiseModel, Scores
from cuolr.export.raw_trees import LARGEST, folded
from cuolr.policies.regression_trees import RegressionTrees
from cuolr.policies.trees_policy import TreesPolicy
from cuolr.progress import Stages, no_stages
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


RANDOM_DOCUMENTS = 10_000
# Random documents of which those next to a threshold are made.
BASE_DOCUMENTS = 64
# Scores this close count as equal, relative to the highest absolute score if that is above 1: float32 holds 7 digits.
ROUNDING = 1e-6


@dataclass(frozen=True)
class ExportCheck:
    """How close the scores of an exported model are to those of its policy.

    Attributes:
        random_documents: Number of random documents.
        threshold_documents: Number of documents at, above and below a threshold, or with its feature missing.
        max_difference: Highest absolute difference of two scores.
        max_score: Highest absolute score of the policy.
        reordered_pairs: Whether two documents, whose scores differ by more than rounding, have another order.
    """

    random_documents: int
    threshold_documents: int
    max_difference: float
    max_score: float
    reordered_pairs: bool

    def require(self) -> None:
        """Raise if the exported model ranks differently, or if the policy has no scores."""
        if not np.isfinite(self.max_score):
            raise InputError("not written: the model gives scores that are not finite numbers; train it again")
        if self.reordered_pairs or not np.isfinite(self.max_difference):
            raise InputError(
                f"not written: it ranks documents in another order than the model, its scores differ by "
                f"up to {self.max_difference:.3g}; use --to onnx, which computes in double precision"
            )


def check_export(
    model: PointwiseModel,
    score: Scores,
    seed: int = 0,
    number: int = RANDOM_DOCUMENTS,
    stages: Stages = no_stages,
) -> ExportCheck:
    """Compare the scores of an exported model with those of its policy.

    Args:
        model: The policy.
        score: The exported model.
        seed: Seed of the random documents.
        number: Number of random documents.
        stages: Receives the progress.
    """
    advance = stages(
        "comparing scores", number + PROBES_PER_SPLIT * sum(len(policy.trees.feature) for policy in _grown(model))
    )
    expected, found = [], []
    for documents in _probes(model, number, np.random.default_rng(seed)):
        expected.append(model.score(documents))
        found.append(score(documents))
        advance(len(documents))
    return compare_scores(np.concatenate(expected), np.concatenate(found), number)


def compare_scores(expected: Doubles, found: Doubles, n_random: int) -> ExportCheck:
    """Compare two scores [n] of each document, the first `n_random` of which are random ones."""
    largest = float(np.abs(expected).max(initial=0))
    return ExportCheck(
        random_documents=n_random,
        threshold_documents=len(expected) - n_random,
        max_difference=float(np.abs(expected - found).max(initial=0)),
        max_score=largest,
        reordered_pairs=reorders(expected, found, ROUNDING * max(1.0, largest)),
    )


def reorders(expected: Doubles, found: Doubles, tolerance: float) -> bool:
    """Whether `found` puts a document at or above another whose expected score is higher by more than `tolerance`.

    >>> reorders(np.array([1.0, 2.0, 3.0]), np.array([0.0, 5.0, 4.0]), 1e-6)
    True
    >>> reorders(np.array([1.0, 2.0, 2.0 + 1e-7]), np.array([0.0, 5.0, 4.0]), 1e-6)
    False
    """
    order = np.argsort(-expected, kind="stable")
    expected, found = expected[order], found[order]
    lowest_above = np.concatenate([[np.inf], np.minimum.accumulate(found)])
    clearly_above = np.searchsorted(-expected, -(expected + tolerance), side="left")
    return bool((lowest_above[clearly_above] <= found).any())


def _probes(model: PointwiseModel, number: int, rng: np.random.Generator) -> Iterator[Floats]:
    grown = [folded(policy) for policy in _grown(model)]
    # Without a rule for missing values, scores other than those of trees would be NaN.
    with_missing = model.normaliser.missing is not None or model.kinds == {"trees"}
    values = FeatureRange.of(model.normaliser, model.n_features, grown)
    yield random_documents(values, number, rng, with_missing)
    for trees in grown:
        base = random_documents(values, BASE_DOCUMENTS, rng, with_missing=False)
        for documents in threshold_documents(trees, base):
            yield documents if with_missing else documents[~np.isnan(documents).any(axis=1)]


def _grown(model: PointwiseModel) -> list[TreesPolicy]:
    return [member for member in model.members if isinstance(member, TreesPolicy)]
