"""Users of a click model fitted by expectation maximisation, such as DCM or trust bias: of all sessions or by level."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import scipy
from scipy.special import expit, logit

from cuolr.clicks.fitting.click_model_fit import Expectation, Values, sums
from cuolr.clicks.fitting.fit_model import FittedClicks, fit_click_model
from cuolr.logs.click_patterns import ClickPatterns
from cuolr.off_policy.users.fitted_users import MIN_EXAMINATIONS, FittedUsers, Influence, UnbiasedRates
from cuolr.types import Doubles, Ints

# Step of the numerical derivative in the logit of a parameter.
STEP = 0.05
# Least observed information of a pair's parameter in its logit.
LEAST_INFORMATION = 1e-6
# Parameters nearer to 0 or 1 than this are at a bound.
AT_BOUND = 1e-3


@dataclass(frozen=True)
class LatentResponse:
    """A click model with its parameters.

    Attributes:
        fitted: The model.
        values: Its parameters.
        rates: α̂ without a prior.
    """

    fitted: FittedClicks
    values: Values
    rates: UnbiasedRates

    def clicks(self, documents: Ints, attractiveness: Doubles | None = None) -> Doubles:
        """The model's marginal click probabilities."""
        alpha = self.rates.attractiveness if attractiveness is None else attractiveness
        chance = self.fitted.model.marginal_with(self.values, alpha, documents)
        return np.where(documents >= 0, chance, 0.0)


@dataclass(frozen=True)
class LatentUsers(FittedUsers):
    """The parameters are those of `fit_click_model`, but for the attractiveness of the pairs, which has no prior.

    Given the clicks above, P(C_k = 1) = a + b · α(d), where b is the probability that the document is examined: one
    equation Σ (clicks − a) = α̂ Σ b per pair, unbiased however few its clicks are. b is that of the fitted model, in
    which the pairs above have their prior.

    Attributes:
        fitted: The model.
        patterns: What it was fitted to, with a pair for every document.
        least: [P] the examinations from which a pair is known, or one number for all.
    """

    fitted: FittedClicks
    patterns: ClickPatterns
    least: Doubles | float = MIN_EXAMINATIONS

    @classmethod
    def fit(cls, name: str, patterns: ClickPatterns, least: Doubles | float = MIN_EXAMINATIONS) -> Self:
        """Fit the click model of this name."""
        return cls(fit_click_model(name, patterns), patterns, least)

    @property
    def name(self) -> str:
        """The click model."""
        return self.fitted.name

    @property
    def size(self) -> int:
        """The entries of the global parameters that the log says something about."""
        return len(self._entries)

    def response(self, shift: Doubles | None = None, weights: Doubles | None = None) -> LatentResponse:
        """With the logits of the global parameters moved, and the parameters of the pairs following them."""
        values = self._moved(shift)
        return LatentResponse(self.fitted, values, self._rates(values, weights))

    def influence(self, group: Ints, groups: int) -> Influence:
        """Scores by Fisher's identity, successes − trials · value; their derivative by finite differences."""
        data = self.fitted.model.data(self.patterns)
        if not self.size:
            return Influence(np.zeros((groups, 0)), np.zeros((0, 0)))
        values = self._moved(None)
        weights = (group == np.arange(groups)[:, None]).astype(np.float64)
        scores = [self._score(values, self.fitted.model.expect(values, data.weighted(row))) for row in weights]
        start = self._moved(np.zeros(self.size))
        at_estimate = self._score(start, self.fitted.model.expect(start, data))
        jacobian = np.empty((self.size, self.size))
        for entry, shift in enumerate(np.eye(self.size) * STEP):
            moved = self._moved(shift)
            jacobian[:, entry] = (self._score(moved, self.fitted.model.expect(moved, data)) - at_estimate) / STEP
        return Influence(np.stack(scores), jacobian)

    @cached_property
    def _entries(self) -> list[tuple[str, int]]:
        """The global parameters, by name and place; those at a bound do not move."""
        values, trials = self.fitted.values, self.fitted.trials
        inside = {n: (values[n] > AT_BOUND) & (values[n] < 1 - AT_BOUND) for n in self.fitted.global_names}
        return [
            (name, int(place)) for name, free in inside.items() for place in np.flatnonzero(free & (trials[name] > 0))
        ]

    def _score(self, values: Values, found: Expectation) -> Doubles:
        """[p] the gradient of the log-likelihood in the logits; global parameters have hardly a prior."""
        return np.array([found.successes[n][i] - found.trials[n][i] * values[n][i] for n, i in self._entries])

    def _moved(self, shift: Doubles | None) -> dict[str, Doubles]:
        """The parameters with the global ones moved, and those of the pairs by one Newton step after them."""
        values = {name: np.clip(value, 1e-9, 1 - 1e-9) for name, value in self.fitted.values.items()}
        if shift is None:
            return values
        for (name, place), change in zip(self._entries, shift, strict=True):
            moved = values[name].copy()
            moved[place] = expit(logit(moved[place]) + change)
            values[name] = moved
        found = self.fitted.model.expect(values, self.fitted.model.data(self.patterns))
        following = {name: self._newton(name, values[name], found) for name in self.fitted.model.by_pair}
        return {**values, **following}

    def _newton(self, name: str, value: Doubles, found: Expectation) -> Doubles:
        """[P] the parameter after a Newton step in its logit; the prior counts as observations."""
        prior = self.fitted.priors[name]
        successes, trials = found.evidence(name, value)
        successes, trials = successes + prior.successes, trials + prior.successes + prior.failures
        information = np.maximum(trials * value * (1 - value), LEAST_INFORMATION)
        step = np.clip((successes - trials * value) / information, -1, 1)
        moved: Doubles = expit(logit(value) + step)
        return moved

    def _rates(self, values: Values, weights: Doubles | None) -> UnbiasedRates:
        """α̂ = Σ (clicks − a) / Σ b."""
        patterns = self.patterns if weights is None else self.patterns.weighted(weights)
        documents, where, count = patterns.documents, patterns.where, patterns.count[:, None]
        offset, slope = self.fitted.model.affine(values, documents, patterns.clicks)
        pairs, of_pairs = len(patterns.pairs), documents[where]
        clicks = sums(of_pairs, (count * (patterns.clicks - offset))[where], pairs)
        return UnbiasedRates(clicks, sums(of_pairs, (count * slope)[where], pairs), self.least)


@dataclass(frozen=True)
class ResponseByLevel:
    """The mean over levels of context, with the same attractiveness in each.

    Attributes:
        levels: The response of each level.
        share: [levels] share of the sessions.
        rates: α̂ of all levels: Σ (clicks − a) / Σ b, with a and b of the level.
    """

    levels: tuple[LatentResponse, ...]
    share: Doubles
    rates: UnbiasedRates

    def clicks(self, documents: Ints, attractiveness: Doubles | None = None) -> Doubles:
        """The mean of the levels' marginal click probabilities."""
        alpha = self.rates.attractiveness if attractiveness is None else attractiveness
        chances = (share * level.clicks(documents, alpha) for share, level in zip(self.share, self.levels, strict=True))
        total: Doubles = sum(chances, np.zeros(documents.shape))
        return total


@dataclass(frozen=True)
class UsersByLevel(FittedUsers):
    """A click model that is fitted to each level of context, but for the attractiveness, which all levels share.

    Attributes:
        levels: The users of each level.
        share: [levels] share of the sessions.
    """

    levels: tuple[LatentUsers, ...]
    share: Doubles

    @classmethod
    def fit(cls, name: str, levels: Sequence[ClickPatterns], least: Doubles | float = MIN_EXAMINATIONS) -> Self:
        """Fit the click model of this name to the counts of each level that has clicks."""
        fitted = tuple(LatentUsers.fit(name, patterns, least) for patterns in levels if patterns.clicks.any())
        sessions = np.array([users.patterns.sessions for users in fitted])
        return cls(fitted, sessions / sessions.sum())

    @property
    def name(self) -> str:
        """The click model."""
        return self.levels[0].name

    @property
    def size(self) -> int:
        """The parameters of all levels."""
        return sum(users.size for users in self.levels)

    def response(self, shift: Doubles | None = None, weights: Doubles | None = None) -> ResponseByLevel:
        """With the parameters of all levels moved."""
        ends = np.cumsum([users.size for users in self.levels])[:-1]
        shifts = [None] * len(self.levels) if shift is None else np.split(shift, ends)
        responses = tuple(users.response(part, weights) for users, part in zip(self.levels, shifts, strict=True))
        clicks, examinations = (
            np.sum([getattr(response.rates, name) for response in responses], axis=0)
            for name in ("clicks", "examinations")
        )
        return ResponseByLevel(responses, self.share, UnbiasedRates(clicks, examinations, self.levels[0].least))

    def influence(self, group: Ints, groups: int) -> Influence:
        """Each level's parameters depend on its own sessions."""
        of_levels = [users.influence(group, groups) for users in self.levels]
        scores = np.concatenate([level.scores for level in of_levels], axis=1)
        return Influence(scores, scipy.linalg.block_diag(*(level.jacobian for level in of_levels)))
