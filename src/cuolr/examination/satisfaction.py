"""The satisfaction of users: how much a click on an attractive document ends the session, from the clicks below it."""

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.stats import chi2

from cuolr.logs.click_patterns import ClickPatterns
from cuolr.logs.counts import last_click_above
from cuolr.types import Doubles

# A likelihood ratio below this is noise: satisfaction is then taken as 0.
MIN_LIKELIHOOD_RATIO = float(chi2.ppf(0.99, 1)) / 2
# Click probabilities are clipped to this distance from 0 and 1, so that one impossible click does not dominate.
MIN_PROBABILITY = 1e-6


def with_satisfaction(patterns: ClickPatterns, attractiveness: Doubles, examination: Doubles) -> tuple[float, Doubles]:
    """σ and χ of P(C_k = 1 | last click above at j) = χ(k, j) · (1 − σ · α(d_j)) · α(d_k), by maximum likelihood.

    χ without a click above stays as it is. For each σ, χ after a click is clicks / Σ (1 − σ · α(d_j)) · α(d_k): the
    number of clicks below a click is explained whatever σ is, and σ by how it differs between clicked documents. Only
    the position directly below the click says so: DCM, CCM and the dynamic Bayesian network model have this form
    there, and further down approximately.

    Args:
        patterns: The counts of the log.
        attractiveness: [P] α of each pair, relative to examination at position 1.
        examination: [K, K + 1] χ, as in `ExaminationModel`.
    """
    after = _Below(patterns, attractiveness, examination)
    if not after.clicks.any():
        return 0.0, examination
    best = minimize_scalar(lambda satisfaction: -after.log_likelihood(satisfaction), bounds=(0, 1), method="bounded")
    satisfaction = float(best.x)
    if after.log_likelihood(satisfaction) - after.log_likelihood(0.0) < MIN_LIKELIHOOD_RATIO:
        return 0.0, examination
    return satisfaction, after.table(satisfaction)


class _Below:
    """The impressions below a click."""

    def __init__(self, patterns: ClickPatterns, attractiveness: Doubles, examination: Doubles) -> None:
        last = last_click_above(patterns.clicks)
        k = min(patterns.k, len(examination))
        row, position = np.nonzero(patterns.where[:, :k] & (last[:, :k] > 0))
        clicked = last[row, position]
        self._examination = examination
        self._cell = (position, clicked)
        self._directly = (position == clicked).astype(np.float64)
        self._key = position * (examination.shape[1]) + clicked
        self._alpha = attractiveness[patterns.documents[row, position]]
        self._alpha_above = np.clip(attractiveness[patterns.documents[row, clicked - 1]], 0, 1)
        self._impressions = patterns.count[row]
        self.clicks = self._impressions * patterns.clicks[row, position]

    def table(self, satisfaction: float) -> Doubles:
        """[K, K + 1] χ with this satisfaction."""
        table = self._examination.copy()
        table[self._cell] = self._chi(satisfaction)
        return table

    def log_likelihood(self, satisfaction: float) -> float:
        """Of the clicks directly below a click."""
        chance = self._chi(satisfaction) * self._relative(satisfaction)
        chance = np.clip(chance, MIN_PROBABILITY, 1 - MIN_PROBABILITY)
        skips = self._impressions - self.clicks
        of_each = self.clicks * np.log(chance) + skips * np.log1p(-chance)
        return float(of_each @ self._directly)

    def _relative(self, satisfaction: float) -> Doubles:
        relative: Doubles = (1 - satisfaction * self._alpha_above) * self._alpha
        return relative

    def _chi(self, satisfaction: float) -> Doubles:
        """[n] χ of the cell of each impression."""
        expected = np.bincount(self._key, weights=self._impressions * self._relative(satisfaction))
        clicks = np.bincount(self._key, weights=self.clicks)
        chi: Doubles = np.divide(clicks, expected, out=np.zeros_like(clicks), where=expected > 0)[self._key]
        return chi
