"""A Beta prior of the parameters by pair, learned from the pairs: empirical Bayes, with one mean or one by features."""

from dataclasses import dataclass, field
from typing import Self

import numpy as np
from scipy.special import gammaln

from cuolr.data.normalise import Normaliser
from cuolr.errors import InputError
from cuolr.logs.click_patterns import ClickPatterns
from cuolr.types import Bools, Doubles, Ints

# Pairs that the prior, or the regression of its mean, is estimated from, at most.
MAX_PAIRS = 20_000
TURNS = 4
# Bounds of the strength: pairs that seem all alike have an infinite one of highest likelihood.
LEAST, MOST = 1e-1, 1e3
# Strength of a prior that decides alone.
EXACT = 1e7
# Smallest pseudo-count, so that no probability is 0 or 1.
PSEUDO_COUNT = 1e-3


@dataclass(frozen=True)
class BetaPrior:
    """Pseudo-counts: a parameter with s successes in n trials is (s + successes) / (n + successes + failures).

    A pair without trials has the mean of the prior.

    Attributes:
        successes: One for each entry of the parameter, or one for all.
        failures: The same.
    """

    successes: Doubles
    failures: Doubles

    @classmethod
    def weak(cls) -> Self:
        """The prior of a global parameter: half a success and half a failure."""
        return cls(np.array([0.5]), np.array([0.5]))

    @classmethod
    def learned(cls, successes: Doubles, trials: Doubles, groups: Ints) -> Self:
        """The prior of each group that maximises the likelihood of its counts, which are then beta-binomial.

        Args:
            successes: [n] of each entry of the parameter.
            trials: [n].
            groups: [n] the group of each entry, from 0.
        """
        number = int(groups.max(initial=0)) + 1
        fitted = np.array([_beta_binomial(successes[groups == g], trials[groups == g]) for g in range(number)])
        return cls(fitted[:, 0], fitted[:, 1]) if number == 1 else cls(fitted[groups, 0], fitted[groups, 1])

    @classmethod
    def around(cls, means: Doubles, successes: Doubles, trials: Doubles) -> Self:
        """The prior with these means [n] and the strength of highest likelihood."""
        seen = _sample_of_seen(trials)
        strength = _strength(successes[seen], trials[seen], means[seen]) if len(seen) else 1.0
        return cls(strength * means, strength * (1 - means))

    @classmethod
    def exactly(cls, means: Doubles) -> Self:
        """The prior from which no entry departs."""
        return cls(EXACT * means, EXACT * (1 - means))

    @property
    def mean(self) -> Doubles:
        """The value of entries without trials; one for each, or one for all."""
        mean: Doubles = self.successes / (self.successes + self.failures)
        return mean

    def posterior(self, successes: Doubles, trials: Doubles) -> Doubles:
        """The parameters: means of the posterior."""
        mean: Doubles = (successes + self.successes) / (trials + self.successes + self.failures)
        return mean

    def log_density(self, values: Doubles) -> float:
        """What the pseudo-counts add to the log-likelihood: 0 at the mean, less elsewhere."""
        mean = self.mean
        more, less = np.log(values) - np.log(mean), np.log1p(-values) - np.log1p(-mean)
        return float((self.successes * more + self.failures * less).sum())


def _beta_binomial(successes: Doubles, trials: Doubles) -> tuple[float, float]:
    """The pseudo-counts: in turn the mean of the pairs' posterior means, and the strength of highest likelihood.

    Deviation: maximum likelihood of both would be drawn from the mean by a distribution that is not a Beta, such as
    that of few grades, and an unseen pair would not have the mean of the others.
    """
    seen = _sample_of_seen(trials)
    if not len(seen):
        return 0.5, 0.5
    yes, number = successes[seen], trials[seen]
    least = 0.5 / (number.sum() + 1)
    mean, strength = (yes.sum() + 0.5) / (number.sum() + 1), 1.0
    for _ in range(TURNS):
        for _ in range(TURNS):
            mean = float(((yes + strength * mean) / (number + strength)).mean())
        mean = min(max(mean, least), 1 - least)
        strength = _strength(yes, number, np.array([mean]))
    return max(strength * mean, PSEUDO_COUNT), max(strength * (1 - mean), PSEUDO_COUNT)


def _strength(successes: Doubles, trials: Doubles, means: Doubles) -> float:
    """The strength of highest likelihood of a prior with these means."""
    from scipy.optimize import minimize_scalar

    failures = np.maximum(trials - successes, 0)

    def loss(log_strength: float) -> float:
        strength = np.exp(log_strength)
        a, b = strength * means, strength * (1 - means)
        # The logarithm of B(s + a, n − s + b) / B(a, b); gammaln is twice as fast as betaln.
        above = gammaln(successes + a) + gammaln(failures + b) - gammaln(successes + failures + strength)
        return -float((above - (gammaln(a) + gammaln(b) - gammaln(strength))).mean())

    bounds = (np.log(LEAST), np.log(MOST))
    return float(np.exp(minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 0.01}).x))


def _sample_of_seen(trials: Doubles) -> Ints:
    """The entries with trials, or a random sample of them."""
    seen = np.flatnonzero(trials > 1e-9)
    return seen if len(seen) <= MAX_PAIRS else np.random.default_rng(0).permutation(seen)[:MAX_PAIRS]


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
