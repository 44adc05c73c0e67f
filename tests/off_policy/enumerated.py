"""Small problems with all their lists, so that the expectation of an estimator is a sum."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np

from cuolr.off_policy.logged_lists import ListProbabilities, LoggedLists
from cuolr.types import Doubles, Ints

# The expected reward at each position of a list.
Users = Callable[[tuple[int, ...]], list[float]]
ATTRACTIVENESS = (0.9, 0.5, 0.3, 0.1)


def position_based(shown: tuple[int, ...]) -> list[float]:
    """The reward depends on the document and the position."""
    return [ATTRACTIVENESS[document] / (position + 1) for position, document in enumerate(shown)]


def cascade(shown: tuple[int, ...]) -> list[float]:
    """The user reads from the top and stops at the first click: the reward depends on the documents above."""
    rewards, reading = [], 1.0
    for document in shown:
        rewards.append(reading * ATTRACTIVENESS[document])
        reading *= 1 - ATTRACTIVENESS[document]
    return rewards


def whole_list(shown: tuple[int, ...]) -> list[float]:
    """The reward depends on the documents below, too."""
    return [ATTRACTIVENESS[document] * (1 - ATTRACTIVENESS[shown[-1]]) for document in shown]


def plackett_luce(rates: list[float], shown: tuple[int, ...]) -> list[float]:
    """The probability of each document given those above."""
    left, probabilities = sum(rates), []
    for document in shown:
        probabilities.append(rates[document] / left)
        left -= rates[document]
    return probabilities


def one_list(best: tuple[int, ...], shown: tuple[int, ...]) -> list[float]:
    """The same of a deterministic policy."""
    return [float(document == own) for document, own in zip(shown, best, strict=True)]


def marginals(rankings: Ints, given_above: Doubles) -> Doubles:
    """[M, K] the probability of each document at its position: the sum over all lists that have it there."""
    of_list = given_above.prod(axis=1)
    same = rankings[:, None, :] == rankings[None, :, :]
    summed: Doubles = np.einsum("m,nmk->nk", of_list, same)
    return np.minimum(summed, 1.0)


@dataclass(frozen=True)
class Enumerated:
    """All lists of k of the documents.

    Attributes:
        rankings: [M, K].
        lists: With the expected reward of each list.
        logging: [M] the logging policy's probability of each list.
        target: [M] the target policy's.
    """

    rankings: Ints
    lists: LoggedLists
    logging: Doubles
    target: Doubles

    @property
    def value(self) -> float:
        """The target policy's expected reward."""
        return float(self.target @ self.lists.reward.sum(axis=1))

    def expected(self, contributions: Doubles) -> float:
        """The expectation of an estimator over logs."""
        return float(self.logging @ contributions)


def enumerated(
    users: Users, logging: list[float], target: list[float] | tuple[int, ...], documents: int = 4, k: int = 3
) -> Enumerated:
    """A logging policy by its rates, and a target policy by its rates, or by its list."""
    shown = list(permutations(range(documents), k))
    rankings = np.array(shown)
    of_logging = np.array([plackett_luce(logging, ranking) for ranking in shown])
    if isinstance(target, tuple):
        of_target = np.array([one_list(target, ranking) for ranking in shown])
        at_positions = of_target
    else:
        of_target = np.array([plackett_luce(target, ranking) for ranking in shown])
        at_positions = marginals(rankings, of_target)
    lists = LoggedLists(
        unit=np.arange(len(shown)),
        where=np.ones(rankings.shape, np.bool_),
        reward=np.array([users(ranking) for ranking in shown]),
        count=np.ones(len(shown), np.int64),
        logging=ListProbabilities(of_logging, marginals(rankings, of_logging)),
        target=ListProbabilities(of_target, at_positions),
    )
    return Enumerated(rankings, lists, of_logging.prod(axis=1), of_target.prod(axis=1))


def sampled(problem: Enumerated, sessions: int, seed: int) -> tuple[LoggedLists, Ints]:
    """Sessions drawn from the logging policy, with clicks for rewards, and the list of each."""
    rng = np.random.default_rng(seed)
    rows = rng.choice(len(problem.logging), sessions, p=problem.logging)
    lists = problem.lists

    def taken(of_lists: ListProbabilities) -> ListProbabilities:
        assert of_lists.marginal is not None
        return ListProbabilities(of_lists.given_above[rows], of_lists.marginal[rows])

    clicks = (rng.random((sessions, lists.where.shape[1])) < lists.reward[rows]).astype(np.float64)
    drawn = replace(
        lists,
        unit=np.arange(sessions),
        where=lists.where[rows],
        reward=clicks,
        count=np.ones(sessions, np.int64),
        logging=taken(lists.logging),
        target=taken(lists.target),
    )
    return drawn, rows
