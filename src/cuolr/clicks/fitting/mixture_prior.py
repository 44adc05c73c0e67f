"""A prior of any shape for the parameters by pair, learned from the pairs: non-parametric empirical Bayes."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from cuolr.clicks.fitting.em import bounded
from cuolr.clicks.fitting.fit_model import DocumentParameters, FittedClicks, fit_click_model
from cuolr.logs.click_patterns import ClickPatterns
from cuolr.types import Doubles, Ints

# Possible values p, equally spaced in arcsin √p: there the standard error of a click rate is the same for all rates.
GRID: Doubles = np.sin((np.arange(64) + 0.5) / 64 * np.pi / 2) ** 2
STEPS = 60
# Pairs that the prior is estimated from, at most; and pairs at a time.
MAX_PAIRS = 20_000
PAIRS_AT_A_TIME = 1 << 15


@dataclass(frozen=True)
class MixturePrior:
    """A distribution over a grid of values (Kiefer and Wolfowitz 1956; Koenker and Mizera 2014).

    Attributes:
        weights: [G] probability of each value of `GRID`.
    """

    weights: Doubles

    @classmethod
    def learned(cls, successes: Doubles, trials: Doubles) -> Self:
        """The distribution that maximises the likelihood of binomial counts, by expectation maximisation.

        Args:
            successes: [n] of each pair.
            trials: [n].
        """
        seen = np.flatnonzero(trials > 1e-9)
        weights = np.full(len(GRID), 1 / len(GRID))
        if not len(seen):
            return cls(weights)
        if len(seen) > MAX_PAIRS:
            seen = np.random.default_rng(0).permutation(seen)[:MAX_PAIRS]
        likelihood = _likelihood(successes[seen], trials[seen])
        for _ in range(STEPS):
            weights = weights * ((1 / (likelihood @ weights)) @ likelihood) / len(seen)
        return cls(weights)

    @property
    def mean(self) -> float:
        """The value of a pair without trials."""
        return float(self.weights @ GRID)

    def posterior(self, successes: Doubles, trials: Doubles) -> Doubles:
        """[n] the posterior means."""
        means = np.empty(len(trials))
        for start in range(0, len(trials), PAIRS_AT_A_TIME):
            rows = slice(start, start + PAIRS_AT_A_TIME)
            chance = _likelihood(successes[rows], trials[rows]) * self.weights
            means[rows] = chance @ GRID / chance.sum(axis=1)
        return means


def with_mixture_prior(fitted: FittedClicks, patterns: ClickPatterns) -> FittedClicks:
    """The same model with parameters by pair under a prior of any shape, which predicts better than a Beta prior.

    A Beta distribution has one hump; documents may be of a few kinds. The global parameters stay those that were fitted
    with the Beta prior.

    Args:
        fitted: What `fit_click_model` returned.
        patterns: The counts that it was fitted to.
    """
    model, values = fitted.model, bounded(fitted.values)
    expectation = model.expect(values, model.data(patterns))
    changed, unseen = {}, {}
    for name in model.by_pair:
        successes, trials = expectation.evidence(name, values[name])
        changed[name], unseen[name] = _shrunk(successes, trials, model.prior_groups())
    return replace(fitted, values={**fitted.values, **changed}, unseen=unseen)


def fit_users(name: str, patterns: ClickPatterns, documents: DocumentParameters = "pair") -> FittedClicks:
    """Fit the click model of this name to predict clicks: `fit_click_model` and, without features, a mixture prior.

    Args:
        name: A name in `CLICK_FITS`.
        patterns: The counts of the log.
        documents: The parameters of documents, see `fit_click_model`.
    """
    fitted = fit_click_model(name, patterns, documents)
    return with_mixture_prior(fitted, patterns) if documents == "pair" else fitted


def _shrunk(successes: Doubles, trials: Doubles, groups: Ints) -> tuple[Doubles, float]:
    """[n] the posterior means, each group with its prior; and the mean of the priors."""
    values, means = np.empty(len(trials)), []
    for group in range(int(groups.max(initial=0)) + 1):
        chosen = groups == group
        prior = MixturePrior.learned(successes[chosen], trials[chosen])
        values[chosen] = prior.posterior(successes[chosen], trials[chosen])
        means.append(prior.mean)
    return values, float(np.mean(means))


def _likelihood(successes: Doubles, trials: Doubles) -> Doubles:
    """[n, G] the likelihood of each value of the grid, up to a factor for each pair."""
    logs = successes[:, None] * np.log(GRID) + np.maximum(trials - successes, 0)[:, None] * np.log1p(-GRID)
    likelihood: Doubles = np.exp(logs - logs.max(axis=1, keepdims=True))
    return likelihood
