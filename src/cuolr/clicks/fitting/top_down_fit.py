"""Base of click models whose users examine from the top until they stop, fitted to a log."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cuolr.clicks.fitting.below_last_click import below_last_click
from cuolr.clicks.fitting.click_model_fit import ClickData, ClickModelFit, Expectation, Values, of_pairs, sums
from cuolr.logs.click_patterns import ClickPatterns
from cuolr.logs.last_clicks import LastClicks
from cuolr.types import Bools, Doubles, Ints


class Counted(NamedTuple):
    """Expected successes and trials of the entries `place` of the parameter `name`; all [n]."""

    name: str
    place: Ints
    successes: Doubles
    trials: Doubles
    hidden: Doubles | None = None  # variance of successes − trials · value, given the clicks


@dataclass(frozen=True)
class Passed:
    """How often users passed documents that have another one below them, expected given the clicks.

    Attributes:
        pair: [n] documents that were clicked.
        position: [n] their positions, from 0.
        clicked: [n] number of sessions.
        onward: [n] probability that such a session continued.
        skipped: Number of sessions and positions with an examined document that was not clicked.
        skipped_on: Those of them that continued.
    """

    pair: Ints
    position: Ints
    clicked: Doubles
    onward: Doubles
    skipped: float
    skipped_on: float


@dataclass(frozen=True)
class TopDownFit(ClickModelFit):
    """The first position is examined; the next one with a probability that depends on this document and its click.

    Down to the last click all is known: what was examined, and that the user continued. Below it, users may have read
    on without a click.

    Deviation: the estimators in the papers of DCM and SDBN take the last click for the end of the session. This is
    maximum likelihood.
    """

    def data(self, patterns: ClickPatterns) -> LastClicks:
        """Counts of (list, last click), and of (document, position) above it."""
        return patterns.last_clicks

    @abstractmethod
    def after_click(self, values: Values, pair: Ints, position: Ints) -> Doubles:
        """The probability to continue after a click on this pair at this position; shapes are broadcast."""

    def after_skip(self, values: Values) -> float:
        """The probability to continue without a click."""
        return 1.0

    @abstractmethod
    def count(self, values: Values, passed: Passed) -> Iterator[Counted]:
        """The expected counts of the parameters that decide whether a user continues."""

    def expect(self, values: Values, data: ClickData) -> Expectation:
        """Above the last click all is known; see `below_last_click` for what is below."""
        assert isinstance(data, LastClicks)
        tails, after_skip = data.tails, self.after_skip(values)
        clicked = tails.start > 0
        after_last = np.ones(len(clicked))
        after_last[clicked] = self.after_click(values, tails.pair[clicked], tails.start[clicked] - 1)
        attractiveness = values["attractiveness"]
        below = below_last_click(tails, 1 - np.append(attractiveness, 0.0), after_last, after_skip)
        attracted, skipped = (sums(data.pair, number, self.pairs) for number in (data.clicks, data.skips))
        above, skips = data.above, float(data.skips.sum())
        onward = np.log(self.after_click(values, above.pair, above.position))
        known = attracted @ np.log(attractiveness) + skipped @ np.log1p(-attractiveness) + above.count @ onward
        likelihood = float(known) + skips * np.log(after_skip) + below.log_likelihood
        successes, trials = ({name: np.zeros(len(value)) for name, value in values.items()} for _ in range(2))
        successes["attractiveness"] += attracted
        trials["attractiveness"] += attracted + skipped + below.examined[:-1]
        hidden = {"attractiveness": attractiveness**2 * (below.examined - below.squared)[:-1]}
        passed = Passed(
            pair=np.concatenate([above.pair, tails.pair[clicked]]),
            position=np.concatenate([above.position, tails.start[clicked] - 1]),
            clicked=np.concatenate([above.count, tails.count[clicked]]),
            onward=np.concatenate([np.ones(len(above.pair)), below.onward[clicked]]),
            skipped=below.skipped + skips,
            skipped_on=below.skipped_on + skips,
        )
        for name, place, yes, number, variance in self.count(values, passed):
            size = len(values[name])
            successes[name] += sums(place, yes, size)
            trials[name] += sums(place, number, size)
            if variance is not None:
                hidden[name] = hidden.get(name, 0.0) + sums(place, variance, size)
        return Expectation(likelihood, successes, trials, hidden)

    def _chances(self, values: Values, documents: Ints) -> tuple[Doubles, Doubles, Doubles]:
        """[M, K] each: attractiveness, and the probabilities to continue; a gap is passed without a click."""
        after_skip = np.where(documents >= 0, self.after_skip(values), 1.0)
        after_click = self.after_click(values, documents, np.arange(documents.shape[1]))
        return of_pairs(values["attractiveness"], documents), after_click, after_skip

    def conditional(self, values: Values, documents: Ints, clicks: Bools) -> Doubles:
        """[M, K] a_k · P(E_k = 1 | the clicks above), by filtering from the top."""
        attractiveness, after_click, after_skip = self._chances(values, documents)
        after_click = np.broadcast_to(after_click, documents.shape)
        chance = np.empty(documents.shape)
        examined = np.ones(len(documents))
        for k in range(documents.shape[1]):
            chance[:, k] = examined * attractiveness[:, k]
            skipped = (examined - chance[:, k]) / np.maximum(1 - chance[:, k], 1e-300)
            examined = np.where(clicks[:, k], after_click[:, k], skipped * after_skip[:, k])
        return chance

    def marginal(self, values: Values, documents: Ints) -> Doubles:
        """[M, K] a_k · Π_{i<k} (a_i·g_i + (1 − a_i)·f)."""
        return self.marginal_with(values, values["attractiveness"], documents)

    def marginal_with(self, values: Values, rates: Doubles, documents: Ints) -> Doubles:
        """[M, K] the same with other rates of clicks, and the fitted probabilities to continue."""
        _, after_click, after_skip = self._chances(values, documents)
        attractiveness = of_pairs(rates, documents)
        onward = attractiveness * after_click + (1 - attractiveness) * after_skip
        reached = np.ones(documents.shape)
        np.cumprod(onward[:, :-1], axis=1, out=reached[:, 1:])
        return attractiveness * reached
