"""The interface of measures, their input, and a measure with its cutoff, such as `ndcg@10`."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import numpy as np

from cuolr.errors import InputError
from cuolr.policies.policy import rank_by_score
from cuolr.registry import Registry
from cuolr.types import Bools, Doubles, IntegerArray, Ints, RankingDataset


@dataclass(frozen=True)
class GradedLists:
    """Ranked lists with the grades of their documents, one row per query.

    Attributes:
        shown: [B, K] the grade of the document at each position, 0 where there is none.
        where: [B, K] true = a document.
        ideal: [B, K] the grades of the ideal list.
        relevant: [B] the number of documents of the query with a grade above 0.
        documents: [B] the number of documents of the query.
        max_grade: The highest grade of the data set's scale.
        k: Number of positions that count; above K only if no query has more than K documents.
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
            ranking: [n_queries, K] the candidate index of the document at each position, −1 after the last one.
        """
        offsets, sizes = dataset.candidates.offsets, dataset.candidates.sizes
        assert len(ranking) == len(sizes), (ranking.shape, len(sizes))
        assert (ranking < sizes[:, None]).all(), "a candidate index beyond the query's last document"
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
        """The first `k` positions of the lists; fewer if no query has `k` documents."""
        width = self.shown.shape[1]
        if k > width and (self.documents > width).any():
            raise InputError(f"a measure at {k} needs lists of {k} documents, found {width}; rank with k >= {k}")
        return replace(self, shown=self.shown[:, :k], where=self.where[:, :k], ideal=self.ideal[:, :k], k=k)

    @property
    def positions(self) -> Ints:
        """[K] positions from 1."""
        return np.arange(1, self.shown.shape[1] + 1)


def exponential_gain(grades: IntegerArray) -> Doubles:
    """2^r − 1."""
    gain: Doubles = np.exp2(grades.astype(np.float64)) - 1
    return gain


def positive(values: Doubles | Ints) -> Doubles:
    """A divisor, with 1 in place of 0."""
    return np.where(values > 0, values, 1.0)


def _grades_at(dataset: RankingDataset, ranking: Ints) -> IntegerArray:
    """[n_queries, K] the grade of each ranked document, 0 where there is none."""
    if not dataset.candidates.n_documents:
        return np.zeros(ranking.shape, np.int8)
    rows = np.where(ranking >= 0, dataset.candidates.offsets[:-1, None] + ranking, 0)
    return np.where(ranking >= 0, dataset.relevance[rows], np.int8(0))


# The value of a query without a relevant document, and its description in tables.
WithoutRelevant = Literal["skip", "zero", "one"]
COUNTED: Mapping[WithoutRelevant, str] = {"skip": "skipped", "zero": "counted as 0", "one": "counted as 1"}
# Maximum digits of a cutoff, which must fit 64 bits.
MAX_DIGITS = 18


class RankingMeasure(ABC):
    """A measure, without its cutoff. A subclass is registered by name in `MEASURES`.

    Attributes:
        parameter: The parameter after the colon, as in `clicks:<click model>`; None = no parameter.
        needs_scale: Whether it depends on the highest grade of the data set's scale.
        without_relevant: Value of a query without a relevant document: `chosen` = as the user chose; `sum` = the same,
            but 0 instead of 1, because a sum of no gains is 0; `own` = the measure's own value.
    """

    parameter: ClassVar[str | None] = None
    needs_scale: ClassVar[bool] = False
    without_relevant: ClassVar[Literal["chosen", "sum", "own"]] = "chosen"

    def __init__(self, argument: str = "") -> None:
        """The measure; `argument` is what follows the colon."""
        self.argument = argument

    @abstractmethod
    def per_query(self, lists: GradedLists) -> Doubles:
        """[B] the value of each list; without a relevant document it is ignored, unless `without_relevant` is `own`."""


MEASURES: Registry[type[RankingMeasure]] = Registry(
    "measure", package="cuolr.evaluation.measures", entry_points="cuolr.measures", base="RankingMeasure"
)


@dataclass(frozen=True)
class Measure:
    """A measure with its cutoff.

    >>> Measure.parse("ndcg@10")
    Measure(name='ndcg', cutoff=10)
    >>> str(Measure("dcg", 5))
    'dcg@5'

    Attributes:
        name: As registered, with the parameter if there is one: `clicks:pbm`.
        cutoff: Number of positions that count.
    """

    name: str
    cutoff: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a measure such as `ndcg@10`."""
        name, at, cutoff = text.partition("@")
        _measure_named(name)
        digits = cutoff.lstrip("0")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= MAX_DIGITS):
            found = f"'{cutoff}'" if at else "none"
            wanted = f"a cutoff from 1 to 10^{MAX_DIGITS} − 1, as in {name}@10"
            raise InputError(f"measure '{text}': expected {wanted}, found {found}")
        return cls(name, int(digits))

    def __str__(self) -> str:
        return f"{self.name}@{self.cutoff}"

    @property
    def needs_scale(self) -> bool:
        """Whether it depends on the highest grade of the data set's scale."""
        return _measure_named(self.name).needs_scale

    def per_query(self, lists: GradedLists, without_relevant: WithoutRelevant = "skip") -> Doubles:
        """The measure of each list.

        Deviation: the paper does not specify the value of queries without a relevant document; here it is an option.

        Args:
            lists: At least as long as the cutoff.
            without_relevant: Value of queries without a relevant document: 0 for `zero`, 1 for `one`, NaN for `skip`.
                For DCG, `one` gives 0. For expected clicks it does not apply.

        Returns:
            [n_queries].
        """
        measure = _measure_named(self.name)
        values = measure.per_query(lists.top(self.cutoff))
        if measure.without_relevant == "own":
            return values
        one = 0.0 if measure.without_relevant == "sum" else 1.0
        return np.where(lists.relevant > 0, values, {"skip": np.nan, "zero": 0.0, "one": one}[without_relevant])


def measure_names() -> list[str]:
    """All measures without their cutoff, with parameters in angle brackets."""
    parameters = {name: MEASURES.get(name).parameter for name in MEASURES.names()}
    return [name if parameter is None else f"{name}:<{parameter}>" for name, parameter in parameters.items()]


def what_counts(without_relevant: WithoutRelevant, measures: Iterable[str]) -> str:
    """The description of how queries without a relevant document count, for a table of these measures.

    >>> what_counts("one", ["ndcg@10", "dcg@5", "clicks:pbm@10"])
    'counted as 1 (dcg@5: 0; clicks:pbm@10: their own value)'
    """
    kinds = {measure: _measure_named(Measure.parse(measure).name).without_relevant for measure in measures}
    sums = ", ".join(measure for measure, kind in kinds.items() if kind == "sum" and without_relevant == "one")
    own = ", ".join(measure for measure, kind in kinds.items() if kind == "own")
    exceptions = [f"{sums}: 0"] * bool(sums) + [f"{own}: their own value"] * bool(own)
    return COUNTED[without_relevant] + (f" ({'; '.join(exceptions)})" if exceptions else "")


def mean_over_queries(values: Doubles) -> float:
    """The mean over the queries that count, which are not NaN."""
    counted = values[~np.isnan(values)]
    if not len(counted):
        raise InputError(f"none of the {len(values)} queries has a relevant document")
    return float(counted.mean())


def _measure_named(name: str) -> RankingMeasure:
    base, colon, argument = name.partition(":")
    measure = MEASURES.get(base)
    if measure.parameter is None and colon:
        raise InputError(f"measure '{name}': '{base}' has no parameter, found ':{argument}'")
    if measure.parameter is not None and not colon:
        raise InputError(f"measure '{name}': expected '{base}:<{measure.parameter}>', found no {measure.parameter}")
    return measure(argument)
