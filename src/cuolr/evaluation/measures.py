"""How good ranked lists are, one value per query, from the true grades of the documents.

A measure is named as it is written everywhere: `ndcg@10` in Python, in the shell and in every table. Gains are 2^r − 1
as in the paper, or the grade itself where the name says `-linear`; a document is relevant if its grade is above 0.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, Self, TypeAlias

import numpy as np

from cuolr.clicks.click_model import ClickModel, click_model, relevance_of
from cuolr.errors import InputError
from cuolr.policies.policy import rank_by_score
from cuolr.registry import Registry
from cuolr.types import Bools, Doubles, IntegerArray, Ints, RankingDataset

# What a query without a relevant document counts, and how a table says so.
WithoutRelevant = Literal["skip", "zero", "one"]
COUNTED: Mapping[WithoutRelevant, str] = {"skip": "skipped", "zero": "counted as 0", "one": "counted as 1"}
# Sums of gains, of which there are none in such a query: 0 is their value, and 1 would make no sense.
SUMS_OF_GAINS = ("dcg", "dcg-linear")


@dataclass(frozen=True)
class GradedLists:
    """All that a measure may look at, one row per query.

    Attributes:
        shown: [B, K] the grade of the document at each position, 0 where there is none.
        where: [B, K] true = a document is there.
        ideal: [B, K] the grades of the best possible list.
        relevant: [B] how many documents of the query have a grade above 0.
        documents: [B] how many documents the query has.
        max_grade: The highest grade of the data set's scale.
        k: Positions that count; more than K only where no query has more than K documents.
    """

    shown: IntegerArray
    where: Bools
    ideal: IntegerArray
    relevant: Ints
    documents: Ints
    max_grade: int
    k: int

    @classmethod
    def of(cls, dataset: RankingDataset, ranking: Ints) -> Self:
        """Look up the grades of ranked documents.

        Args:
            dataset: The queries and their true grades.
            ranking: [n_queries, K] the slot of the document at each position, −1 after the last one.
        """
        offsets, sizes = dataset.candidates.offsets, dataset.candidates.sizes
        assert len(ranking) == len(sizes), (ranking.shape, len(sizes))
        assert (ranking < sizes[:, None]).all(), "a slot beyond the query's last document"
        # The ideal list is the ranking by the true grades.
        best = rank_by_score(dataset.relevance.astype(np.float32), offsets, ranking.shape[1])
        query = dataset.candidates.query_of_document
        return cls(
            shown=_grades_at(dataset, ranking),
            where=ranking >= 0,
            ideal=_grades_at(dataset, best),
            relevant=np.bincount(query[dataset.relevance > 0], minlength=len(sizes)),
            documents=sizes,
            max_grade=dataset.max_grade,
            k=ranking.shape[1],
        )

    def top(self, k: int) -> "GradedLists":
        """The lists of the first `k` positions; they are shorter where no query has so many documents."""
        width = self.shown.shape[1]
        if k > width and (self.documents > width).any():
            raise InputError(f"a measure at {k} needs lists of {k} documents, found {width}; rank at least {k}")
        return replace(self, shown=self.shown[:, :k], where=self.where[:, :k], ideal=self.ideal[:, :k], k=k)


def _grades_at(dataset: RankingDataset, ranking: Ints) -> IntegerArray:
    """[n_queries, K] the grade of each ranked document, 0 where there is none."""
    if not dataset.candidates.n_documents:
        return np.zeros(ranking.shape, np.int8)
    rows = np.where(ranking >= 0, dataset.candidates.offsets[:-1, None] + ranking, 0)
    return np.where(ranking >= 0, dataset.relevance[rows], np.int8(0))


MeasureFunction: TypeAlias = Callable[[GradedLists], Doubles]
MEASURES: Registry[MeasureFunction] = Registry("measure", package=None, entry_points="cuolr.measures")
# What the name of a measure of expected clicks begins with; the click model's follows.
CLICKS = "clicks:"
# Of a cutoff: what 64 bits can hold.
MAX_DIGITS = 18


@dataclass(frozen=True)
class Measure:
    """A measure with its cutoff.

    >>> Measure.parse("ndcg@10")
    Measure(name='ndcg', cutoff=10)
    >>> str(Measure("dcg", 5))
    'dcg@5'

    Attributes:
        name: As registered.
        cutoff: Positions that count, from the top.
    """

    name: str
    cutoff: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a measure as it is written: `ndcg@10`."""
        name, at, cutoff = text.partition("@")
        _function_of(name)
        digits = cutoff.lstrip("0")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= MAX_DIGITS):
            found = f"'{cutoff}'" if at else "nothing"
            wanted = f"a whole number from 1 to 10^{MAX_DIGITS} − 1"
            raise InputError(f"measure '{text}': expected '@' and {wanted} after '{name}', found {found}")
        return cls(name, int(digits))

    def __str__(self) -> str:
        return f"{self.name}@{self.cutoff}"

    @property
    def is_of_clicks(self) -> bool:
        """Whether it is of clicks, which a query without a relevant document has as well as any other."""
        return self.name.startswith(CLICKS)

    @property
    def needs_scale(self) -> bool:
        """Whether it depends on the highest grade of the data set's scale."""
        return self.name == "err" or self.is_of_clicks

    def per_query(self, lists: GradedLists, without_relevant: WithoutRelevant = "skip") -> Doubles:
        """The measure of each list.

        Deviation: the paper does not say what a query without a relevant document counts; here it is a choice.

        Args:
            lists: At least as long as the cutoff.
            without_relevant: What a query without a relevant document counts: `zero`, `one`, or NaN, for `skip`. It
                always has its expected clicks; and 0, not 1, for DCG.

        Returns:
            [n_queries].
        """
        values = _function_of(self.name)(lists.top(self.cutoff))
        if self.is_of_clicks:
            return values
        one = 0.0 if self.name in SUMS_OF_GAINS else 1.0
        return np.where(lists.relevant > 0, values, {"skip": np.nan, "zero": 0.0, "one": one}[without_relevant])


def measure_ranking(
    dataset: RankingDataset, ranking: Ints, measure: str, without_relevant: WithoutRelevant = "skip"
) -> Doubles:
    """One measure of ranked lists, by name.

    Args:
        dataset: The queries and their true grades.
        ranking: [n_queries, K] slots, −1 after the last document.
        measure: Such as `ndcg@10`.
        without_relevant: What a query without a relevant document counts.

    Returns:
        [n_queries], NaN for the queries to skip.
    """
    return Measure.parse(measure).per_query(GradedLists.of(dataset, ranking), without_relevant)


def what_counts(without_relevant: WithoutRelevant, measures: Iterable[str]) -> str:
    """How a table of these measures says what queries without a relevant document count.

    >>> what_counts("one", ["ndcg@10", "dcg@5", "clicks:pbm@10"])
    'counted as 1 (dcg@5: 0; clicks:pbm@10: their own value)'
    """
    parsed = [Measure.parse(measure) for measure in measures]
    sums = ", ".join(str(measure) for measure in parsed if measure.name in SUMS_OF_GAINS and without_relevant == "one")
    clicks = ", ".join(str(measure) for measure in parsed if measure.is_of_clicks)
    exceptions = [f"{sums}: 0"] * bool(sums) + [f"{clicks}: their own value"] * bool(clicks)
    return COUNTED[without_relevant] + (f" ({'; '.join(exceptions)})" if exceptions else "")


def mean_over_queries(values: Doubles) -> float:
    """The mean over the queries that count, that is, are not NaN."""
    counted = values[~np.isnan(values)]
    if not len(counted):
        raise InputError(f"none of the {len(values)} queries has a relevant document, so there is nothing to average")
    return float(counted.mean())


@MEASURES.register("dcg")
def dcg(lists: GradedLists) -> Doubles:
    """Discounted cumulative gain, Σ_k (2^r_k − 1) / log2(1 + k), positions k counted from 1."""
    return _discounted_sum(_exponential_gain(lists.shown))


@MEASURES.register("ndcg")
def ndcg(lists: GradedLists) -> Doubles:
    """Discounted cumulative gain over that of the ideal list; 0 where no document is relevant."""
    return dcg(lists) / _positive(_discounted_sum(_exponential_gain(lists.ideal)))


@MEASURES.register("dcg-linear")
def dcg_linear(lists: GradedLists) -> Doubles:
    """Discounted cumulative gain where the gain is the grade itself, Σ_k r_k / log2(1 + k)."""
    return _discounted_sum(lists.shown.astype(np.float64))


@MEASURES.register("ndcg-linear")
def ndcg_linear(lists: GradedLists) -> Doubles:
    """The same over that of the ideal list; what `trec_eval` and scikit-learn call nDCG."""
    return dcg_linear(lists) / _positive(_discounted_sum(lists.ideal.astype(np.float64)))


@MEASURES.register("err")
def err(lists: GradedLists) -> Doubles:
    """Expected reciprocal rank, Σ_k (1/k)·R_k·Π_{i<k} (1 − R_i), with R = (2^r − 1) / 2^r_max.

    Chapelle et al. 2009; r_max is the highest grade of the data set's scale.
    """
    satisfied = _exponential_gain(lists.shown) / 2**lists.max_grade
    arrived = np.ones_like(satisfied)
    np.cumprod(1 - satisfied[:, :-1], axis=1, out=arrived[:, 1:])
    total: Doubles = (arrived * satisfied) @ (1 / _positions(lists.shown))
    return total


@MEASURES.register("mrr")
def mrr(lists: GradedLists) -> Doubles:
    """One over the position of the first relevant document, 0 where none is shown; its mean is the MRR."""
    relevant = lists.shown > 0
    first: Doubles = relevant.any(axis=1) / (1.0 + relevant.argmax(axis=1))
    return first


@MEASURES.register("precision")
def precision(lists: GradedLists) -> Doubles:
    """Share of the positions that hold a relevant document; a list that ends early has the rest wrong."""
    share: Doubles = (lists.shown > 0).sum(axis=1) / lists.k
    return share


@MEASURES.register("map")
def average_precision(lists: GradedLists) -> Doubles:
    """Average precision; its mean is the MAP: Σ_k [d_k relevant]·precision@k / min(k_max, relevant documents).

    The divisor is what an ideal list of this length can reach, so that it gets 1; `trec_eval`'s `map_cut` divides by
    all relevant documents, which is the same where the list is long enough to hold them.
    """
    relevant = lists.shown > 0
    precisions = np.cumsum(relevant, axis=1) / _positions(lists.shown)
    possible = np.minimum(lists.relevant, lists.k)
    total: Doubles = (relevant * precisions).sum(axis=1) / _positive(possible)
    return total


def expected_clicks(lists: GradedLists, model: ClickModel, discount: float = 1.0) -> Doubles:
    """[B] Σ_k γ^(k−1)·P(C_k = 1): the return of the ranking MDP, equation 3, if users behave as `model` says.

    As a measure its name is `clicks:` and the click model's, such as `clicks:pbm@10`, with γ = 1.
    """
    probability = model.click_probability(relevance_of(lists.shown, lists.max_grade), lists.where)
    total: Doubles = probability @ discount ** np.arange(lists.shown.shape[1], dtype=np.float64)
    return total


def _function_of(name: str) -> MeasureFunction:
    """The measure of that name."""
    if name.startswith(CLICKS):
        model = click_model(name.removeprefix(CLICKS))
        return lambda lists: expected_clicks(lists, model)
    return MEASURES.get(name)


def _exponential_gain(grades: IntegerArray) -> Doubles:
    gain: Doubles = np.exp2(grades.astype(np.float64)) - 1
    return gain


def _positions(grades: IntegerArray) -> Ints:
    """[K] positions as people count them."""
    return np.arange(1, grades.shape[1] + 1)


def _discounted_sum(gains: Doubles) -> Doubles:
    total: Doubles = gains @ (1 / np.log2(1 + np.arange(1, gains.shape[1] + 1)))
    return total


def _positive(values: Doubles | Ints) -> Doubles:
    """To divide by: 1 in the place of 0."""
    return np.where(values > 0, values, 1.0)
