"""Base of click models whose users examine from the top until they stop, fitted to a log."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cuolr.clicks.fitting.click_model_fit import ClickData, ClickModelFit, Expectation, Values, of_pairs, sums
from cuolr.logs.click_patterns import ClickPatterns
from cuolr.logs.last_clicks import LastClicks, Tails
from cuolr.types import Bools, Doubles, Ints

# Lists at a time: their arrays fit a core's cache.
LISTS_AT_A_TIME = 1 << 12
# Smallest probability that a list has no clicks: one that is rounded to 0 has no logarithm.
LEAST = 1e-300


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


@dataclass
class BelowLastClick:
    """Expected examinations below the last clicks.

    Attributes:
        examined: [P + 1] number of examinations of each pair; the last entry is for gaps.
        squared: [P + 1] Σ P(examined)² over the same sessions and positions.
        onward: [n] probability that a session of each tail continued after its last click.
        skipped: Number of examinations of a document with another one below it; not counted if all users continue.
        skipped_on: Those of them after which the user continued.
        log_likelihood: Of what follows the last clicks.
    """

    examined: Doubles
    squared: Doubles
    onward: Doubles
    skipped: float = 0.0
    skipped_on: float = 0.0
    log_likelihood: float = 0.0


def below_last_click(tails: Tails, skip: Doubles, after_click: Doubles, after_skip: float) -> BelowLastClick:
    """Backward and forward through the positions of each list.

    The probability that nothing is clicked from position k on, if it is examined, is
    β_k = (1 − a_k)·(1 − f + f·β_{k+1}). After a last click, with g the probability to continue, nothing follows with
    probability 1 − g + g·β; the next position was examined with g·β / (1 − g + g·β). If position k was, k + 1 was with
    f·β_{k+1} / (1 − f + f·β_{k+1}), wherever the last click was: the sessions of a list are added up on the way down.

    Args:
        tails: The counts.
        skip: [P + 1] 1 − a, the probability that each pair is not clicked if examined; 1 for a gap.
        after_click: [n] g of the last click of each tail; 1 without a click.
        after_skip: f; a gap is always passed.
    """
    found = BelowLastClick(np.zeros(len(skip)), np.zeros(len(skip)), np.empty(len(tails.row)))
    lists = tails.documents.shape[1]
    for first in range(0, lists, LISTS_AT_A_TIME):
        rows = slice(first, min(first + LISTS_AT_A_TIME, lists))
        inside = slice(*np.searchsorted(tails.row, (rows.start, rows.stop)).tolist())
        count, row, start = tails.count[inside], tails.row[inside] - rows.start, tails.start[inside]
        top = int(start.min())
        documents, start = tails.documents[top:, rows], start - top
        none, following = _nothing_clicked(skip, documents, after_skip)
        on = after_click[inside] * none[start, row]
        rest = on + (1 - after_click[inside])
        onward = on / rest
        entering = np.zeros((2, *documents.shape))
        entering[0, start, row], entering[1, start, row] = count * onward, count * onward**2
        _flow(entering, following)
        examined, squared = entering
        found.examined += sums(documents, examined, len(skip))
        found.squared += sums(documents, squared, len(skip))
        found.onward[inside] = onward
        found.log_likelihood += float(count @ np.log(rest))
        if following is not None:
            passed = examined * tails.informative[top:, rows]
            found.skipped += float(passed.sum())
            found.skipped_on += float(np.vdot(passed, following[0]))
    return found


def _nothing_clicked(skip: Doubles, documents: Ints, after_skip: float) -> tuple[Doubles, Doubles | None]:
    """[K, L] β_k; and [2, K, L] P(the next position was examined | this one was), and squared; None = always."""
    none = np.maximum(skip[documents], LEAST)
    if after_skip == 1:
        for k in range(len(none) - 2, -1, -1):
            none[k] = np.maximum(none[k] * none[k + 1], LEAST)
        return none, None
    follow = np.where(documents < len(skip) - 1, after_skip, 1.0)
    following = np.empty((2, *none.shape))
    following[0, -1] = follow[-1]
    for k in range(len(none) - 2, -1, -1):
        on = follow[k] * none[k + 1]
        rest = on + (1 - follow[k])
        np.divide(on, rest, out=following[0, k])
        none[k] = np.maximum(none[k] * rest, LEAST)
    np.square(following[0], out=following[1])
    return none, following


def _flow(entering: Doubles, following: Doubles | None) -> None:
    """Change [2, K, L] those who enter at each position, and squared ones, to those who examine it."""
    for k in range(1, entering.shape[1]):
        before = entering[:, k - 1]
        entering[:, k] += before if following is None else before * following[:, k - 1]
