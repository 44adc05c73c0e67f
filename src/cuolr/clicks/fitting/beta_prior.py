"""A Beta prior of the parameters by pair, learned from the pairs: empirical Bayes."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import betaln

from cuolr.types import Doubles, Ints

# Pairs that the prior is estimated from, at most.
MAX_PAIRS = 20_000
TURNS = 4
# Bounds of the strength: pairs that seem all alike have an infinite one of highest likelihood.
LEAST, MOST = 1e-1, 1e3
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
        """What the pseudo-counts add to the log-likelihood."""
        return float((self.successes * np.log(values) + self.failures * np.log1p(-values)).sum())


def _beta_binomial(successes: Doubles, trials: Doubles) -> tuple[float, float]:
    """The pseudo-counts: in turn the mean of the pairs' posterior means, and the strength of highest likelihood.

    Deviation: maximum likelihood of both would be drawn from the mean by a distribution that is not a Beta, such as
    that of few grades, and an unseen pair would not have the mean of the others.
    """
    from scipy.optimize import minimize_scalar

    seen = np.flatnonzero(trials > 1e-9)
    if not len(seen):
        return 0.5, 0.5
    if len(seen) > MAX_PAIRS:
        seen = np.random.default_rng(0).permutation(seen)[:MAX_PAIRS]
    yes, no = successes[seen], np.maximum(trials[seen] - successes[seen], 0)
    least = 0.5 / (yes.sum() + no.sum() + 1)
    mean, strength = (yes.sum() + 0.5) / (yes.sum() + no.sum() + 1), 1.0
    for _ in range(TURNS):
        for _ in range(TURNS):
            mean = float(((yes + strength * mean) / (yes + no + strength)).mean())
        mean = min(max(mean, least), 1 - least)

        def loss(log_strength: float, mean: float = mean) -> float:
            a, b = np.exp(log_strength) * mean, np.exp(log_strength) * (1 - mean)
            return -float((betaln(yes + a, no + b) - betaln(a, b)).mean())

        bounds = (np.log(LEAST), np.log(MOST))
        strength = float(np.exp(minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 0.01}).x))
    return max(strength * mean, PSEUDO_COUNT), max(strength * (1 - mean), PSEUDO_COUNT)
