"""The core data types: what a ranker may see, and what only the simulator and the evaluator may see.

Arrays are NumPy (they may be memory-mapped files); only what a network computes with is a torch tensor.
Axes: B batch, K list, N candidates, F features.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from cuolr.config import from_dict
from cuolr.errors import InputError

Floats: TypeAlias = npt.NDArray[np.float32]
Doubles: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Bools: TypeAlias = npt.NDArray[np.bool_]
Strings: TypeAlias = npt.NDArray[np.str_]
IntegerArray: TypeAlias = npt.NDArray[np.integer[Any]]


FeatureKind: TypeAlias = Literal["number", "boolean", "category", "hashed category", "date"]
# Numbers that a hashed category may become.
MAX_BUCKETS = 1 << 16


@dataclass(frozen=True)
class FeatureColumn:
    """How a column of a feature table becomes numbers.

    Attributes:
        name: Its name in the table.
        kind: A number and a boolean are one number; NaN = missing. A category has a number for each level, 1 for the
            level of the document and 0 for the others. Of a hashed category, the levels are the buckets of a hash. A
            date is its age in days before `latest`; NaN = missing.
        levels: The levels of a category.
        buckets: Number of buckets of a hashed category.
        missing_level: Whether a category has one more level, for documents without a value; otherwise all are 0.
        latest: The latest date of the training data, as in ISO 8601.
    """

    name: str
    kind: FeatureKind = "number"
    levels: tuple[str, ...] = ()
    buckets: int = 0
    missing_level: bool = False
    latest: str = ""

    def __post_init__(self) -> None:
        if not 0 <= self.buckets <= MAX_BUCKETS or (self.kind == "hashed category" and not self.buckets):
            raise InputError(f"column '{self.name}': expected 1 to {MAX_BUCKETS:,} buckets, found {self.buckets:,}")
        if self.kind == "date":
            _check_date(self)

    @property
    def feature_names(self) -> list[str]:
        """The names of its numbers."""
        if self.kind not in ("category", "hashed category"):
            return [self.name]
        names = [f"{self.name}={level}" for level in self.levels]
        names += [f"{self.name}#{bucket}" for bucket in range(self.buckets)]
        return [*names, f"{self.name} is missing"] if self.missing_level else names


def _check_date(column: FeatureColumn) -> None:
    """Raise if a date has no time to count its age from."""
    try:
        known = datetime.fromisoformat(column.latest).tzinfo is None
    except ValueError:
        known = False
    if not known:
        raise InputError(f"column '{column.name}': expected a date without time zone, found {column.latest!r}")


@dataclass(frozen=True)
class FeatureRecipe:
    """How the columns of a feature table become numbers. It is decided once, on the training data.

    Attributes:
        columns: The columns that are used, in the order of their numbers.
        dropped: Columns that were left out on request.
        impression: Columns of the log, whose values may change from impression to impression. If there are some, the
            candidates of a log are variants of documents.
    """

    columns: tuple[FeatureColumn, ...]
    dropped: tuple[str, ...] = ()
    impression: tuple[str, ...] = ()

    @property
    def feature_names(self) -> list[str]:
        """[F] the names of all numbers."""
        return [name for column in self.columns for name in column.feature_names]

    def differing(self, other: "FeatureRecipe") -> list[str]:
        """The columns of both that become other numbers; a boolean is the same as its number."""
        known = {column.name: column for column in self.columns}
        pairs = [(known[column.name], column) for column in other.columns if column.name in known]
        plain = {"number", "boolean"}
        return [one.name for one, two in pairs if one != two and not {one.kind, two.kind} <= plain]

    def to_dict(self) -> dict[str, Any]:
        """As JSON can hold it; settings that a kind does not have are left out."""
        columns = [{key: value for key, value in asdict(column).items() if value} for column in self.columns]
        return {"columns": columns, "dropped": list(self.dropped), "impression": list(self.impression)}

    @classmethod
    def from_dict(cls, recipe: Mapping[str, Any]) -> Self:
        """The recipe that `to_dict` was taken from; raises if it could not have been."""
        return from_dict(cls, recipe, "recipe")


@dataclass(frozen=True)
class Candidates:
    """All that a ranker may see: the documents of each query, one row of features each.

    Attributes:
        features: [n_documents, F] float32, the documents of a query in consecutive rows; NaN = missing.
        offsets: [n_queries + 1] where each query's rows begin; the last entry is n_documents.
        query_ids: [n_queries] as in the file.
        document_ids: [n_documents]; None if the source has none.
        feature_names: [F]; None if the source has none.
        recipe: How they were made from the columns of a table; None if the source has no columns.
    """

    features: Floats
    offsets: Ints
    query_ids: Strings
    document_ids: Strings | None = None
    feature_names: Strings | None = None
    recipe: FeatureRecipe | None = None

    def __post_init__(self) -> None:
        assert self.features.ndim == 2, self.features.shape
        assert self.offsets.shape == (len(self.query_ids) + 1,), (self.offsets.shape, len(self.query_ids))
        assert self.offsets[0] == 0, self.offsets[0]
        assert self.offsets[-1] == len(self.features), (self.offsets[-1], len(self.features))
        assert self.document_ids is None or len(self.document_ids) == len(self.features)
        assert self.feature_names is None or self.feature_names.shape == self.features.shape[1:]

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.query_ids)

    @property
    def n_documents(self) -> int:
        """Number of documents, over all queries."""
        return len(self.features)

    @property
    def n_features(self) -> int:
        """F, the number of features of a document."""
        return int(self.features.shape[1])

    @property
    def sizes(self) -> Ints:
        """[n_queries] the number of documents of each query."""
        return np.diff(self.offsets)

    @property
    def query_of_document(self) -> Ints:
        """[n_documents] the query that each row belongs to."""
        return np.repeat(np.arange(self.n_queries), self.sizes)

    @property
    def document_names(self) -> Strings:
        """[n_documents] the ids; a document without one is named by its number within the query, from 1."""
        numbers = (np.arange(self.n_documents) - self.offsets[self.query_of_document] + 1).astype(np.str_)
        if self.document_ids is None:
            return numbers
        ids = np.asarray(self.document_ids)
        return np.where(ids != "", ids, numbers)

    def rows_of(self, queries: IntegerArray) -> Ints:
        """The rows of these queries' documents, query by query."""
        sizes = self.sizes[queries]
        starts = np.repeat(self.offsets[queries] - (np.cumsum(sizes) - sizes), sizes)
        return starts + np.arange(sizes.sum())

    def padded_rows(self, queries: IntegerArray) -> tuple[Ints, Bools]:
        """The rows of each query's documents, padded to a rectangle.

        Returns:
            rows: [B, N] the row of each document, N the longest of these queries; 0 where there is none.
            where: [B, N] true = a real document.
        """
        sizes = self.sizes[queries]
        indices = np.arange(sizes.max(initial=0))
        where = indices < sizes[:, None]
        return np.where(where, self.offsets[queries, None] + indices, 0), where

    def select(self, queries: IntegerArray) -> "Candidates":
        """These queries only, in this order."""
        rows = self.rows_of(queries)
        return Candidates(
            features=self.features[rows],
            offsets=np.concatenate([[0], np.cumsum(self.sizes[queries])]),
            query_ids=self.query_ids[queries],
            document_ids=None if self.document_ids is None else self.document_ids[rows],
            feature_names=self.feature_names,
            recipe=self.recipe,
        )


@dataclass(frozen=True)
class RankingDataset:
    """Candidates with their true relevance. Simulator and evaluator only: a learner must never see one.

    Attributes:
        candidates: What a ranker may see.
        relevance: [n_documents] the grade of each document, 0 = not relevant.
        max_grade: The highest grade of the data set's scale, whether or not it occurs here.
    """

    candidates: Candidates
    relevance: npt.NDArray[np.int8]
    max_grade: int

    def __post_init__(self) -> None:
        assert self.relevance.shape == (self.candidates.n_documents,), self.relevance.shape

    def select(self, queries: IntegerArray) -> "RankingDataset":
        """These queries only, in this order."""
        rows = self.candidates.rows_of(queries)
        return RankingDataset(self.candidates.select(queries), self.relevance[rows], self.max_grade)
