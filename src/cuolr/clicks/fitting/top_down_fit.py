"""Base of click models whose users examine from the top until they stop, fitted to a log."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cuolr.clicks.fitting.click_model_fit import ClickData, ClickModelFit, Expectation, Values, of_pairs, sums
from cuolr.logs.click_patterns import ClickPatterns
from cuolr.types import Bools, Doubles, Ints

# Rows of click patterns at a time: their arrays fit a core's cache.
ROWS_AT_A_TIME = 1 << 12


class Counted(NamedTuple):
    """Expected successes and trials by session [M, K], of the entries `place` of the parameter `name`."""

    name: str
    place: Ints
    successes: Doubles
    trials: Doubles
    hidden: Doubles | None = None  # variance of successes − trials · value, given the clicks


@dataclass(frozen=True)
class Passed:
    """How often users reached and passed each position, expected given the clicks; all [M, K], by session.

    Only positions with a document below them tell whether a user continued: elsewhere the four are 0.

    Attributes:
        clicked: Sessions with a click here.
        clicked_on: Those of them that continued.
        skipped: Sessions that examined the document and did not click.
        skipped_on: Those of them that continued.
    """

    clicked: Doubles
    clicked_on: Doubles
    skipped: Doubles
    skipped_on: Doubles


@dataclass(frozen=True)
class TopDownFit(ClickModelFit):
    """The first position is examined; the next one with a probability that depends on this document and its click.

    Down to the last click all is known. Below it, with a the attractiveness, f the probability to continue after a
    skip and g after a click, the probability that nothing is clicked from position k on if it is examined is
    β_k = (1 − a_k)·(1 − f + f·β_{k+1}), and that of what follows the last click, at t, is 1 − g_t + g_t·β_{t+1}.

    Deviation: the estimators in the papers of DCM and SDBN take the last click for the end of the session. This is
    maximum likelihood, by which users may have read on without a click.
    """

    @abstractmethod
    def after_click(self, values: Values, documents: Ints) -> Doubles:
        """[M, K] the probability to continue after a click."""

    def after_skip(self, values: Values) -> float:
        """The probability to continue without a click."""
        return 1.0

    @abstractmethod
    def count(self, values: Values, documents: Ints, passed: Passed) -> Iterator[Counted]:
        """The expected counts of the parameters that decide whether a user continues, by position."""

    def expect(self, values: Values, data: ClickData) -> Expectation:
        """Forward and backward through the positions."""
        assert isinstance(data, ClickPatterns)
        successes = {name: np.zeros(len(value)) for name, value in values.items()}
        trials = {name: np.zeros(len(value)) for name, value in values.items()}
        hidden: dict[str, Doubles] = {}
        likelihood = 0.0
        for start in range(0, len(data), ROWS_AT_A_TIME):
            rows = slice(start, start + ROWS_AT_A_TIME)
            documents, count = data.documents[rows], data.count[rows]
            log_likelihood, counted = self._block(values, documents, data.clicks[rows])
            likelihood += float(count @ log_likelihood)
            for name, place, yes, number, variance in counted:
                size, weight = len(values[name]), count[:, None]
                successes[name] += sums(place, yes * weight, size)
                trials[name] += sums(place, number * weight, size)
                if variance is not None:
                    hidden[name] = hidden.get(name, 0.0) + sums(place, variance * weight, size)
        return Expectation(likelihood, successes, trials, hidden)

    def _block(self, values: Values, documents: Ints, clicks: Bools) -> tuple[Doubles, list[Counted]]:
        where = documents >= 0
        attractiveness, after_click, after_skip = self._chances(values, documents)
        none_below = _probability_of_no_clicks(attractiveness, after_skip)
        later = _any_later(clicks)
        examined = np.ones((len(documents), self.k + 1))
        log_likelihood = np.where(clicks.any(axis=1), 0.0, np.log(none_below[:, 0]))
        for k in range(self.k):
            click, more, below = clicks[:, k], later[:, k], none_below[:, k + 1]
            onward = np.where(click, after_click[:, k], after_skip[:, k])
            on = onward * below
            rest = on + (1 - onward)
            examined[:, k + 1] = np.where(more, 1.0, examined[:, k] * on / rest)
            chance = np.where(click, attractiveness[:, k], 1 - attractiveness[:, k])
            known = np.log(chance * np.where(more, onward, rest))
            log_likelihood += np.where(click | more, known, 0.0)
        passed = _passed(examined, clicks, where & _any_later(where))
        reached = examined[:, :-1] * where
        hidden = attractiveness**2 * reached * (1 - reached)
        attraction = Counted("attractiveness", np.maximum(documents, 0), clicks.astype(np.float64), reached, hidden)
        return log_likelihood, [attraction, *self.count(values, documents, passed)]

    def _chances(self, values: Values, documents: Ints) -> tuple[Doubles, Doubles, Doubles]:
        """[M, K] each: attractiveness, and the probabilities to continue; a gap is passed without a click."""
        after_skip = np.where(documents >= 0, self.after_skip(values), 1.0)
        return of_pairs(values["attractiveness"], documents), self.after_click(values, documents), after_skip

    def conditional(self, values: Values, documents: Ints, clicks: Bools) -> Doubles:
        """[M, K] a_k · P(E_k = 1 | the clicks above), by filtering from the top."""
        attractiveness, after_click, after_skip = self._chances(values, documents)
        chance = np.empty(documents.shape)
        examined = np.ones(len(documents))
        for k in range(documents.shape[1]):
            chance[:, k] = examined * attractiveness[:, k]
            skipped = (examined - chance[:, k]) / np.maximum(1 - chance[:, k], 1e-300)
            examined = np.where(clicks[:, k], after_click[:, k], skipped * after_skip[:, k])
        return chance

    def marginal(self, values: Values, documents: Ints) -> Doubles:
        """[M, K] a_k · Π_{i<k} (a_i·g_i + (1 − a_i)·f)."""
        attractiveness, after_click, after_skip = self._chances(values, documents)
        onward = attractiveness * after_click + (1 - attractiveness) * after_skip
        reached = np.ones(documents.shape)
        np.cumprod(onward[:, :-1], axis=1, out=reached[:, 1:])
        return attractiveness * reached


def _probability_of_no_clicks(attractiveness: Doubles, after_skip: Doubles) -> Doubles:
    """[M, K + 1] β."""
    rows, k = attractiveness.shape
    none = np.ones((rows, k + 1))
    for position in range(k - 1, -1, -1):
        onward = after_skip[:, position]
        none[:, position] = (1 - attractiveness[:, position]) * ((1 - onward) + onward * none[:, position + 1])
    return none


def _any_later(flags: Bools) -> Bools:
    """[M, K] whether a flag is set at a later position."""
    later = np.zeros(flags.shape, np.bool_)
    later[:, :-1] = np.logical_or.accumulate(flags[:, :0:-1], axis=1)[:, ::-1]
    return later


def _passed(examined: Doubles, clicks: Bools, informative: Bools) -> Passed:
    """The expected counts, from P(E_k = 1 | all clicks) [M, K + 1]."""
    reached, onward = examined[:, :-1] * informative, examined[:, 1:] * informative
    return Passed(reached * clicks, onward * clicks, reached * ~clicks, onward * ~clicks)
