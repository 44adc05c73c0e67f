"""What users examine below their last click, if they examine from the top: expected, by dynamic programming."""

from dataclasses import dataclass

import numpy as np

from cuolr.clicks.fitting.click_model_fit import sums
from cuolr.logs.last_clicks import Tails
from cuolr.types import Doubles, Ints

# Lists at a time: their arrays fit a core's cache.
LISTS_AT_A_TIME = 1 << 12
# Smallest probability that a list has no clicks: one that is rounded to 0 has no logarithm.
LEAST = 1e-300


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
