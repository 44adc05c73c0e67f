"""Exhaustive test of whether sorting by attractiveness maximises the expected clicks, assumption 3.1 of the paper."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cuolr.clicks.click_model import ClickModel, click_model_table, relevance_of
from cuolr.config import Range, check_arguments
from cuolr.errors import InputError
from cuolr.progress import Progress, no_progress
from cuolr.random import DEFAULT_SEED
from cuolr.types import Doubles, Floats, Ints

MAX_GRADE = 4
MAX_ORDERS = 1_000_000
# Smaller differences are rounding errors: values are sums of at most ten probabilities in double precision.
TOLERANCE = 1e-9
VALUES_PER_BLOCK = 1_000_000


@dataclass(frozen=True)
class Counterexample:
    """Documents for which another list has more expected clicks than the sorted one.

    Attributes:
        sorted_list: [k] the relevance of the shown documents, sorted.
        best_list: [k] the same for the list with the most expected clicks.
        sorted_value: Expected discounted clicks on the sorted list.
        best_value: The same on the best list.
    """

    sorted_list: tuple[float, ...]
    best_list: tuple[float, ...]
    sorted_value: float
    best_value: float

    @property
    def gain(self) -> float:
        """The expected discounted clicks that sorting loses."""
        return self.best_value - self.sorted_value

    @property
    def share_missed(self) -> float:
        """The share of the best list's expected discounted clicks that sorting loses, between 0 and 1."""
        return self.gain / self.best_value


@dataclass(frozen=True)
class OptimalityReport:
    """The result of the search.

    Attributes:
        click_model: Its registered name.
        documents: Number of documents to choose from.
        k: Length of the lists.
        discount: γ; the weight of a click is γ^position.
        instances: Number of random instances; every second one has documents of grade 0 to 4, the others have a
            continuous relevance between 0 and 1.
        seed: Seed of the instances.
        graded_violations: Number of graded instances in which a list beats the sorted one.
        continuous_violations: Number of continuous instances in which a list beats the sorted one.
        largest: The counterexample where sorting loses the largest share of the clicks; None if sorting is best.
    """

    click_model: str
    documents: int
    k: int
    discount: float
    instances: int
    seed: int
    graded_violations: int
    continuous_violations: int
    largest: Counterexample | None

    @property
    def violations(self) -> int:
        """Number of instances in which a list beats the sorted one."""
        return self.graded_violations + self.continuous_violations

    @property
    def holds(self) -> bool:
        """Whether sorting was best in all instances."""
        return self.violations == 0

    def describe(self) -> str:
        """The report as text."""
        graded = self.instances - self.instances // 2
        lines = [
            f"{self.click_model}: {self.documents} documents, {self.k} shown, discount {self.discount:g}, "
            f"{self.instances} random instances (seed {self.seed})"
        ]
        if self.largest is None:
            return "\n".join([*lines, "sorting by attractiveness is optimal in all instances"])
        return "\n".join(
            [
                *lines,
                f"sorting by attractiveness is not optimal in {self.violations}: {self.graded_violations} of {graded} "
                f"with grades, {self.continuous_violations} of {self.instances // 2} with continuous relevance",
                f"largest counterexample: {self.largest.best_value:.6f} expected clicks instead of "
                f"{self.largest.sorted_value:.6f} (+{self.largest.gain:.6f}; sorting loses "
                f"{self.largest.share_missed:.2%})",
                f"  relevance, sorted: {_spaced(self.largest.sorted_list)}",
                f"  relevance, best:   {_spaced(self.largest.best_list)}",
            ]
        )


def check_optimality(
    model: ClickModel,
    documents: int = 6,
    k: int | None = None,
    discount: float = 1.0,
    instances: int = 500,
    seed: int = DEFAULT_SEED,
    progress: Progress = no_progress,
) -> OptimalityReport:
    """Compare the sorted list with all others: is max_R V_R = V_R*, with V_R = Σ_k γ^(k−1)·P(C_k = 1 | R)?

    Section 3.3, assumption 3.1. Every permutation of every k documents is evaluated with the exact marginals.

    Args:
        model: The click model.
        documents: Number of documents to choose from.
        k: Length of the lists; None = all documents.
        discount: γ, between 0 and 1.
        instances: Number of random instances.
        seed: Seed of the instances.
        progress: Called with 1 after each instance.
    """
    k = documents if k is None else k
    _check_arguments(documents, k, discount, instances, seed)
    orders = np.array(list(itertools.permutations(range(documents), k)))
    counts = {True: 0, False: 0}
    largest: Counterexample | None = None
    for graded, relevance, values in _searched(model, orders, documents, discount, instances, seed):
        progress(1)
        best = int(np.argmax(values))
        if values[best] - values[0] <= TOLERANCE:
            continue
        counts[graded] += 1
        found = Counterexample(
            sorted_list=tuple(relevance[orders[0]].tolist()),
            best_list=tuple(relevance[orders[best]].tolist()),
            sorted_value=float(values[0]),
            best_value=float(values[best]),
        )
        if largest is None or found.share_missed > largest.share_missed:
            largest = found
    return OptimalityReport(
        click_model=click_model_table(model)["name"],
        documents=documents,
        k=k,
        discount=discount,
        instances=instances,
        seed=seed,
        graded_violations=counts[True],
        continuous_violations=counts[False],
        largest=largest,
    )


def list_values(model: ClickModel, lists: Floats, discount: float) -> Doubles:
    """[B] expected discounted clicks Σ_k γ^k·P(C_k = 1) on lists of documents with this relevance [B, K]."""
    clicks = model.click_probability(lists, np.ones(lists.shape, np.bool_))
    return clicks @ discount ** np.arange(lists.shape[1], dtype=np.float64)


def random_relevance(instances: int, documents: int, seed: int) -> Floats:
    """[instances, documents] in descending order; every second row, starting with the first, is graded."""
    rng = np.random.default_rng(seed)
    relevance = rng.random((instances, documents), dtype=np.float32)
    relevance[::2] = relevance_of(rng.integers(0, MAX_GRADE + 1, relevance[::2].shape), MAX_GRADE)
    return -np.sort(-relevance, axis=1)


def _searched(
    model: ClickModel, orders: Ints, documents: int, discount: float, instances: int, seed: int
) -> Iterator[tuple[bool, Floats, Doubles]]:
    """For each instance: whether it is graded, the relevance of its documents, and the value of every order."""
    relevance = random_relevance(instances, documents, seed)
    step = max(VALUES_PER_BLOCK // orders.size, 1)
    for start in range(0, instances, step):
        block = relevance[start : start + step]
        lists = block[:, orders].reshape(-1, orders.shape[1])
        values = list_values(model, lists, discount).reshape(len(block), len(orders))
        for row in range(len(block)):
            yield (start + row) % 2 == 0, block[row], values[row]


def _check_arguments(documents: int, k: int, discount: float, instances: int, seed: int) -> None:
    check_arguments(
        documents=(documents, Range(1)),
        k=(k, Range(1, max(documents, 1))),
        discount=(discount, Range(0, 1)),
        instances=(instances, Range(1)),
        seed=(seed, Range(0)),
    )
    if (orders := math.perm(documents, k)) > MAX_ORDERS:
        raise InputError(
            f"{documents} documents, {k} shown, have {orders:,} orders; at most {MAX_ORDERS:,} can be searched; use "
            "fewer documents or a smaller k"
        )


def _spaced(relevance: tuple[float, ...]) -> str:
    return " ".join(f"{value:.3f}" for value in relevance)
