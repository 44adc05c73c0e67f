"""A Beta prior of the parameters by pair, learned from the pairs: empirical Bayes."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import gammaln

from cuolr.types import Doubles, Ints

# Pairs that the prior is estimated from, at most.
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
