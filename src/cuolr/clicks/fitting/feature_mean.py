"""The mean of a parameter by pair as a function of the documents' features: logistic regression on expected counts."""

from dataclasses import dataclass, field

import numpy as np

from cuolr.data.normalise import Normaliser
from cuolr.errors import InputError
from cuolr.logs.click_patterns import ClickPatterns
from cuolr.types import Bools, Doubles, Ints

# Pairs that a regression is fitted to, at most.
MAX_PAIRS = 20_000
STEPS = 25
TOLERANCE = 1e-6
# Half the inverse variance of the normal prior on a weight, to choose from; features are between −1 and 1.
RIDGES = (0.5, 5.0, 50.0, 500.0)
FOLDS = 2


@dataclass
class FeatureMean:
    """σ(w · x) of scaled features x, fitted again and again while the counts change.

    The strength of the prior on w is chosen by cross-validation over queries, at the first fit.

    Attributes:
        features: [P, F + 1] see `scaled_features`.
        fold: [P] the fold of each pair's query.
        ridge: The strength of the prior on w; 0 = not chosen yet.
        weights: w of all pairs (key −1), and of those that are not in a fold.
    """

    features: Doubles
    fold: Ints
    ridge: float = 0.0
    weights: dict[int, Doubles] = field(default_factory=dict)

    @classmethod
    def of(cls, patterns: ClickPatterns) -> "FeatureMean":
        """For the pairs of a log."""
        query = patterns.candidates.query_of_document[patterns.pairs]
        folds = np.random.default_rng(0).permutation(patterns.candidates.n_queries) % FOLDS
        return cls(scaled_features(patterns), folds[query])

    def fit(self, successes: Doubles, trials: Doubles) -> Doubles:
        """[P] the mean of each pair, from a regression on the expected counts of all pairs."""
        if not self.ridge:
            losses = [self._held_out_loss(successes, trials, ridge) for ridge in RIDGES]
            self.ridge = RIDGES[int(np.argmin(losses))]
        self.weights[-1] = self._regression(trials > 0, successes, trials, self.ridge, self.weights.get(-1))
        return self._mean(self.weights[-1])

    def fit_across(self, successes: Doubles, trials: Doubles) -> Doubles:
        """[P] as `fit`, but that of a pair with trials is from the other queries: its own counts come on top of it."""
        mean = self.fit(successes, trials)
        for fold in range(FOLDS):
            others, start = (trials > 0) & (self.fold != fold), self.weights.get(fold)
            self.weights[fold] = self._regression(others, successes, trials, self.ridge, start)
            mean = np.where((trials > 0) & (self.fold == fold), self._mean(self.weights[fold]), mean)
        return mean

    def _held_out_loss(self, successes: Doubles, trials: Doubles, ridge: float) -> float:
        total = 0.0
        for fold in range(FOLDS):
            weights = self._regression((trials > 0) & (self.fold != fold), successes, trials, ridge)
            score = np.clip(self.features @ weights, -20, 20)
            loss = trials * np.logaddexp(0, score) - successes * score
            total += float(loss[self.fold == fold].sum())
        return total

    def _mean(self, weights: Doubles) -> Doubles:
        mean: Doubles = 1 / (1 + np.exp(-np.clip(self.features @ weights, -20, 20)))
        return mean

    def _regression(
        self, chosen: Bools, successes: Doubles, trials: Doubles, ridge: float, start: Doubles | None = None
    ) -> Doubles:
        """The weights of highest penalised likelihood, by Newton's method with halved steps."""
        rows = np.flatnonzero(chosen)
        if len(rows) > MAX_PAIRS:
            rows = np.random.default_rng(0).permutation(rows)[:MAX_PAIRS]
        x, s, n = self.features[rows], successes[rows], trials[rows]
        penalty = np.full(x.shape[1], ridge)
        penalty[-1] = 1e-3  # the constant

        def loss(weights: Doubles) -> float:
            score = x @ weights
            return float(n @ np.logaddexp(0, score) - s @ score + penalty @ weights**2)

        weights = np.zeros(x.shape[1]) if start is None else start
        value = loss(weights)
        for _ in range(STEPS):
            mean = 1 / (1 + np.exp(-np.clip(x @ weights, -30, 30)))
            gradient = x.T @ (n * mean - s) + 2 * penalty * weights
            curvature = (x * (n * mean * (1 - mean))[:, None]).T @ x + np.diag(2 * penalty)
            step = np.linalg.solve(curvature, gradient)
            while (following := loss(weights - step)) > value and np.abs(step).max() > TOLERANCE:
                step = step / 2
            if value - following <= TOLERANCE * abs(value):
                break
            weights, value = weights - step, following
        return weights


def scaled_features(patterns: ClickPatterns) -> Doubles:
    """[P, F + 1] the features of the pairs, between −1 and 1, and a constant 1."""
    features = patterns.candidates.features[patterns.pairs]
    if not features.shape[1] or (features == features[:1]).all():
        raise InputError("the documents of this log have no features that differ; fit the parameters of pairs instead")
    normaliser = Normaliser.fit("log-min-max", patterns.candidates)
    scaled = normaliser.transform(features).astype(np.float64)
    return np.concatenate([scaled, np.ones((len(scaled), 1))], axis=1)
