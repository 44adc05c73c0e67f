"""A linear ranker, and the ranking SVM that fits it to pairs of documents, with or without a matrix of differences.

Without it, w · (x_better − x_worse) is a difference of two scores, and a sum over pairs is a sum over documents, so
that both the loss and its derivatives need one product with the features of the documents. The solver is the
trust-region Newton method of LIBLINEAR (Lin, Weng, Keerthi, 2008), with its constants and its stopping rule.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from cuolr.data.normalise import Normaliser
from cuolr.policies.policy import POLICIES, ScaledScoringPolicy
from cuolr.types import Bools, Doubles, Floats, Ints

# Maximum size of the matrix of pair differences, which limits the memory of fitting to about 1.2 GB.
MAX_PAIR_VALUES = 50_000_000
PAIRS_AT_A_TIME = 1 << 14


@POLICIES.register("ranksvm")
@dataclass(frozen=True)
class LinearPolicy(ScaledScoringPolicy):
    """Scores a document by w · x, where x is its normalised features.

    Attributes:
        weights: [F + M] the weights w, those of indicators of missing values last.
        normaliser: Fitted on the training candidates.
    """

    weights: Floats
    normaliser: Normaliser

    @property
    def n_features(self) -> int:
        """The number of weights, without those of indicators of missing values."""
        return len(self.weights) - self.normaliser.n_indicators

    def score_scaled(self, features: Floats) -> Floats:
        """[n] w · x."""
        # Not a matrix product: BLAS rounds a row differently depending on the rows around it.
        scores: Floats = np.einsum("nf,f->n", features, self.weights)
        return scores

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Weights and the fitted range of each feature."""
        return {"weights": self.weights, **self.normaliser.arrays()}

    def settings(self) -> dict[str, Any]:
        """How features are normalised."""
        return self.normaliser.settings()

    @classmethod
    def from_parts(cls, arrays: Mapping[str, npt.NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        """The policy with these weights."""
        weights = arrays["weights"]
        if weights.ndim != 1 or weights.dtype != np.float32 or not np.isfinite(weights).all():
            raise ValueError(f"weights: expected finite float32 numbers, found {weights.dtype} {list(weights.shape)}")
        return cls(weights, Normaliser.from_parts(arrays, settings))


def draw_pairs(
    grades: npt.NDArray[np.int8], offsets: Ints, pairs_per_query: int, rng: np.random.Generator
) -> tuple[Ints, Ints]:
    """Sample pairs of documents of the same query with different grades.

    All pairs of a query if there are at most `pairs_per_query`; otherwise a stratified sample without replacement, one
    pair from each of `pairs_per_query` equal segments of the list of all pairs, so that every grade is represented.

    Args:
        grades: [n_documents] from 0 to 127, higher = better.
        offsets: [n_queries + 1] where each query's documents begin.
        pairs_per_query: Maximum number of pairs per query.
        rng: Random generator of the sample.

    Returns:
        better: [n_pairs] the row of the document with the higher grade.
        worse: [n_pairs] the row of the other.
    """
    sizes = np.diff(offsets)
    query = np.repeat(np.arange(len(sizes)), sizes)
    by_grade = np.lexsort((grades, query))
    # In this order, the documents worse than a document are those between the starts of its query and of its grade.
    new_grade = np.diff(query * 128 + grades[by_grade], prepend=-1) != 0
    grade_start = np.maximum.accumulate(np.where(new_grade, np.arange(len(query)), 0))
    pairs_before = np.concatenate([[0], np.cumsum(grade_start - offsets[query])])

    available = np.diff(pairs_before[offsets])
    taken = np.minimum(available, pairs_per_query)
    of_query = np.repeat(np.arange(len(sizes)), taken)
    stretch = np.arange(len(of_query)) - np.repeat(np.cumsum(taken) - taken, taken)
    first = stretch * available[of_query] // taken[of_query]
    last = (stretch + 1) * available[of_query] // taken[of_query]
    pair = pairs_before[offsets[:-1]][of_query] + rng.integers(first, last)

    better = np.searchsorted(pairs_before, pair, side="right") - 1
    worse = offsets[:-1][of_query] + pair - pairs_before[better]
    return by_grade[better], by_grade[worse]


def fit_pairs(features: Floats, better: Ints, worse: Ints, C: float) -> Doubles:
    """[F] the weights w of a ranking SVM: min_w ½|w|² + C·mean max(0, 1 − w·(x_better − x_worse))².

    By LIBLINEAR itself, so that the logging policies of simulations stay the same to the bit; `fit_ranking_svm` gives
    the same to 1e-7 in less memory and time.

    Args:
        features: [n_documents, F] x.
        better: [n_pairs] the row of the better document of each pair.
        worse: [n_pairs] the row of the other.
        C: Weight of the loss.
    """
    from sklearn.svm import LinearSVC  # imported here because it takes half a second to load

    # The solver needs two classes, so every other pair is reversed; a single pair is used both ways.
    if len(better) == 1:
        better, worse = np.repeat(better, 2), np.repeat(worse, 2)
    sign = np.where(np.arange(len(better)) % 2, -1, 1)
    # The solver computes in double precision: the one copy of the matrix is in it.
    differences = np.empty((len(better), features.shape[1]), np.float64)
    for start in range(0, len(better), PAIRS_AT_A_TIME):
        part = slice(start, start + PAIRS_AT_A_TIME)
        differences[part] = sign[part, None] * (features[better[part]] - features[worse[part]])
    svm = LinearSVC(dual=False, fit_intercept=False, C=C / len(differences))
    weights: Doubles = svm.fit(differences, sign).coef_[0]
    return weights


# Documents that are converted to double precision at a time, to bound memory.
DOCUMENTS_AT_A_TIME = 1 << 13
# Documents that are scored at a time: few enough for the cache of a processor.
SCORED_AT_A_TIME = 1 << 10
# LIBLINEAR's: when a step is taken, how the trust region changes, and when to stop.
MIN_GAIN, LOW_GAIN, HIGH_GAIN = 1e-4, 0.25, 0.75
SHRINK, SHRINK_AFTER_FAILURE, GROW = 0.25, 0.5, 4.0
TOLERANCE, TOLERANCE_OF_STEP, TOLERANCE_OF_LOSS, MAX_STEPS = 1e-4 / 2, 0.1, 1e-12, 1_000


def fit_ranking_svm(features: Floats, better: Ints, worse: Ints, C: float) -> Doubles:
    """[F] the weights w of a ranking SVM: min_w ½|w|² + C·mean max(0, 1 − w·(x_better − x_worse))².

    Args:
        features: [n_documents, F] x.
        better: [n_pairs] the row of the better document of each pair.
        worse: [n_pairs] the row of the other.
        C: Weight of the loss.
    """
    problem = _Pairs(features, better, worse, C / len(better))
    weights = np.zeros(features.shape[1])
    margins = problem.margins(weights)
    loss, gradient = problem.loss(weights, margins), problem.gradient(weights, margins)
    first = radius = float(np.linalg.norm(gradient))
    steps = 0
    while steps < MAX_STEPS and np.linalg.norm(gradient) > TOLERANCE * first:
        step, residual = _step(problem, gradient, margins < 1, radius)
        tried = weights + step
        tried_margins = problem.margins(tried)
        slope, length = float(gradient @ step), float(np.linalg.norm(step))
        predicted = -0.5 * (slope - float(step @ residual))
        new_loss = problem.loss(tried, tried_margins)
        gain = loss - new_loss
        radius = _new_radius(min(radius, length) if steps == 0 else radius, length, gain, predicted, slope)
        if gain > MIN_GAIN * predicted:
            steps += 1
            weights, margins, loss = tried, tried_margins, new_loss
            gradient = problem.gradient(weights, margins)
        if max(abs(gain), abs(predicted)) <= TOLERANCE_OF_LOSS * abs(loss):
            break
    return weights


@dataclass(frozen=True)
class _Pairs:
    """The loss of the pairs and its derivatives; the arguments are those of `fit_ranking_svm`."""

    features: Floats
    better: Ints
    worse: Ints
    C: float

    def margins(self, weights: Doubles) -> Doubles:
        """[n_pairs] w · (x_better − x_worse)."""
        scores = np.empty(len(self.features))
        for start in range(0, len(self.features), SCORED_AT_A_TIME):
            part = slice(start, start + SCORED_AT_A_TIME)
            scores[part] = self.features[part].astype(np.float64) @ weights
        return scores[self.better] - scores[self.worse]

    def summed(self, values: Doubles) -> Doubles:
        """[F] the sum over pairs of a value times x_better − x_worse."""
        n = len(self.features)
        of_document = np.bincount(self.better, values, n) - np.bincount(self.worse, values, n)
        total = np.zeros(self.features.shape[1])
        for start in range(0, n, DOCUMENTS_AT_A_TIME):
            part = slice(start, start + DOCUMENTS_AT_A_TIME)
            total += of_document[part] @ self.features[part].astype(np.float64)
        return total

    def loss(self, weights: Doubles, margins: Doubles) -> float:
        short = np.maximum(1 - margins, 0)
        return 0.5 * float(weights @ weights) + self.C * float(short @ short)

    def gradient(self, weights: Doubles, margins: Doubles) -> Doubles:
        gradient: Doubles = weights + 2 * self.C * self.summed(np.minimum(margins - 1, 0))
        return gradient

    def curvature(self, direction: Doubles, short: Bools) -> Doubles:
        """[F] the Hessian times a direction; `short` = the pairs whose margin is below 1."""
        curvature: Doubles = direction + 2 * self.C * self.summed(self.margins(direction) * short)
        return curvature


def _step(problem: _Pairs, gradient: Doubles, short: Bools, radius: float) -> tuple[Doubles, Doubles]:
    """Newton's step by conjugate gradients, within the trust region, and what is left of the gradient."""
    step, residual = np.zeros_like(gradient), -gradient
    direction = residual.copy()
    squared = float(residual @ residual)
    while np.linalg.norm(residual) > TOLERANCE_OF_STEP * np.linalg.norm(gradient):
        curvature = problem.curvature(direction, short)
        length = squared / float(direction @ curvature)
        if np.linalg.norm(step + length * direction) > radius:
            length = _to_the_border(step, direction, radius)
            return step + length * direction, residual - length * curvature
        step = step + length * direction
        residual = residual - length * curvature
        before, squared = squared, float(residual @ residual)
        direction = residual + squared / before * direction
    return step, residual


def _to_the_border(step: Doubles, direction: Doubles, radius: float) -> float:
    """How far to go in a direction until the trust region ends."""
    along, left, squared = float(step @ direction), radius**2 - float(step @ step), float(direction @ direction)
    root = np.sqrt(along**2 + squared * left)
    return float(left / (along + root) if along >= 0 else (root - along) / squared)


def _new_radius(radius: float, length: float, gain: float, predicted: float, slope: float) -> float:
    """The trust region after a step of this length, by how much it gained of what was predicted."""
    excess = -gain - slope
    factor = GROW if excess <= 0 else max(SHRINK, -0.5 * slope / excess)
    if gain < MIN_GAIN * predicted:
        return min(max(factor, SHRINK) * length, SHRINK_AFTER_FAILURE * radius)
    if gain < LOW_GAIN * predicted:
        return max(SHRINK * radius, min(factor * length, SHRINK_AFTER_FAILURE * radius))
    if gain < HIGH_GAIN * predicted:
        return max(SHRINK * radius, min(factor * length, GROW * radius))
    return max(radius, min(factor * length, GROW * radius))
