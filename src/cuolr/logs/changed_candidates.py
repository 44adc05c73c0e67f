"""Logs with changed candidates: of several logs as one, without queries that have no session left, or in groups."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from cuolr.errors import InputError
from cuolr.logs.clicklog import ClickLog
from cuolr.types import Candidates, Floats, Ints

# Documents whose features are compared at a time, to bound memory.
ROWS_AT_A_TIME = 65_536


@dataclass(frozen=True)
class UnitedCandidates:
    """The candidates of several logs, in the order in which they occur first.

    Attributes:
        candidates: All queries and documents. Features are those of the last log that has the document.
        query: For each log, [n_queries] the new index of each query.
        document: For each log, [n_documents] the new row of each document.
        changed: Number of documents whose features differ between logs.
    """

    candidates: Candidates
    query: tuple[Ints, ...]
    document: tuple[Ints, ...]
    changed: int


def unite(parts: Sequence[Candidates], names: Sequence[str]) -> UnitedCandidates:
    """Unite candidates.

    Args:
        parts: Those of each log, the latest last, with the same features in any order.
        names: What to call each log in messages.
    """
    first = parts[0]
    if all(_same(first, part) for part in parts[1:]):
        queries, documents = np.arange(first.n_queries), np.arange(first.n_documents)
        return UnitedCandidates(first, (queries,) * len(parts), (documents,) * len(parts), 0)
    for part, name in zip(parts, names, strict=True):
        if part.document_ids is None:
            raise InputError(f"{name}: has no document ids, by which documents of different logs are matched")
    parts = [_in_order_of(first, part, names[0], name) for part, name in zip(parts, names, strict=True)]
    query_ids = pl.concat([pl.Series(part.query_ids) for part in parts]).unique(maintain_order=True)
    numbers = pl.DataFrame({"query_id": query_ids}).with_row_index("query")
    query_of = [_queries(part, numbers) for part in parts]
    found = pl.concat([_documents(*of_part) for of_part in zip(parts, query_of, names, strict=True)])
    # Sorted by query; within it, documents in the order in which they occur first.
    distinct = found.unique(maintain_order=True).sort("query", maintain_order=True).with_row_index("row")
    found = found.join(distinct, on=["query", "name"], how="left", maintain_order="left")
    rows = np.split(found["row"].to_numpy().astype(np.int64), np.cumsum([part.n_documents for part in parts])[:-1])
    n_documents = len(distinct)
    features = np.empty((n_documents, first.n_features), np.float32)
    document_ids = np.empty(n_documents, np.result_type(*(np.asarray(part.document_ids) for part in parts)))
    query = np.empty(n_documents, np.int64)
    for part, of_part, row in zip(parts, query_of, rows, strict=True):
        features[row], document_ids[row] = part.features, part.document_ids
        query[row] = of_part[part.query_of_document]
    changed = np.zeros(n_documents, np.bool_)
    for part, row in zip(parts, rows, strict=True):
        changed[row[_differing(part.features, features, row)]] = True
    sizes = np.bincount(query, minlength=len(query_ids))
    united = Candidates(
        features,
        np.concatenate([[0], np.cumsum(sizes)]),
        query_ids.to_numpy().astype(np.str_),
        document_ids,
        first.feature_names,
        first.recipe,
    )
    return UnitedCandidates(united, tuple(query_of), tuple(rows), int(changed.sum()))


def _same(one: Candidates, other: Candidates) -> bool:
    if one.features.shape != other.features.shape or not np.array_equal(one.offsets, other.offsets):
        return False
    if one.recipe is not None and other.recipe is not None and one.recipe.differing(other.recipe):
        return False
    for a, b in (
        (one.query_ids, other.query_ids),
        (one.document_ids, other.document_ids),
        (one.feature_names, other.feature_names),
    ):
        if (a is None) != (b is None) or (a is not None and b is not None and not np.array_equal(a, b)):
            return False
    return not len(_differing(one.features, other.features, np.arange(one.n_documents)))


def _differing(features: Floats, united: Floats, rows: Ints) -> Ints:
    """The documents whose features are not those of their row in `united`."""
    found = []
    for start in range(0, len(features), ROWS_AT_A_TIME):
        part = slice(start, start + ROWS_AT_A_TIME)
        ours, theirs = features[part], united[rows[part]]
        # NaN is a missing value, which equals another.
        differ = (ours != theirs) & ~(np.isnan(ours) & np.isnan(theirs))
        found.append(start + np.flatnonzero(differ.any(axis=1)))
    return np.concatenate(found) if found else np.empty(0, np.int64)


def _in_order_of(first: Candidates, part: Candidates, first_name: str, name: str) -> Candidates:
    """The candidates with their features in the order of `first`."""
    if first.recipe is not None and part.recipe is not None and (differing := first.recipe.differing(part.recipe)):
        again = f"import it with features as in {first_name}"
        raise InputError(
            [
                f"{name}: column '{column}' was encoded in another way than in {first_name}; {again}"
                for column in differing
            ]
        )
    known, found = first.feature_names, part.feature_names
    if known is None or found is None:
        if (known is None) == (found is None) and first.n_features == part.n_features:
            return part
        raise InputError(
            f"{name}: expected the {first.n_features} features of {first_name}"
            f"{'' if known is None else ', with their names'}, found {part.n_features}"
            f"{'' if found is None else ' with names'}"
        )
    if np.array_equal(known, found):
        return part
    problems = [
        f"{name}: feature '{feature}' is missing, which {first_name} has" for feature in known if feature not in found
    ]
    problems += [f"{name}: feature '{feature}' is not in {first_name}" for feature in found if feature not in known]
    if problems:
        raise InputError(problems)
    order = [found.tolist().index(feature) for feature in known]
    return replace(part, features=part.features[:, order], feature_names=known)


def _queries(part: Candidates, numbers: pl.DataFrame) -> Ints:
    """[n_queries] the new index of each query."""
    ids = pl.DataFrame({"query_id": part.query_ids})
    return ids.join(numbers, on="query_id", how="left", maintain_order="left")["query"].to_numpy().astype(np.int64)


def _documents(part: Candidates, query_of: Ints, name: str) -> pl.DataFrame:
    """The new query and the name of each document."""
    frame = pl.DataFrame({"query": query_of[part.query_of_document], "name": part.document_names})
    repeated = frame.filter(pl.struct("query", "name").is_duplicated())
    if len(repeated):
        raise InputError(f"{name}: two documents of a query have the id '{repeated['name'][0]}'; give each its own")
    return frame


class QueriesLeft:
    """All queries of a log but some, of which no session is left."""

    def __init__(self, orphans: Ints) -> None:
        """Take note of the queries without sessions.

        Args:
            orphans: Their numbers.
        """
        self._orphans = orphans
        self._candidates: Candidates | None = None

    def of(self, log: ClickLog) -> ClickLog:
        """A chunk of the log over the other queries."""
        if not len(self._orphans):
            return log
        if self._candidates is None:
            queries = np.setdiff1d(np.arange(log.candidates.n_queries), self._orphans)
            self._candidates = log.candidates.select(queries)
            self._number = np.zeros(log.candidates.n_queries, np.int32)
            self._number[queries] = np.arange(len(queries))
        return replace(log, candidates=self._candidates, query=self._number[log.query])


# From this number on, queries are held out, resampled, and what intervals are over; with fewer, their sessions are.
MANY_QUERIES = 10


def in_groups(log: ClickLog, group: Ints, groups: int) -> ClickLog:
    """The same sessions, each under its group's copy of the query, with copies of the documents.

    What is done by query, such as holding out and resampling, is then done by group of sessions, where there are too
    few queries for it.

    Args:
        log: A log of n queries.
        group: [M] the group of each row, from 0.
        groups: The number of groups.

    Returns:
        A log of groups · n queries; query q of group g is number g·n + q.
    """
    queries = np.tile(np.arange(log.candidates.n_queries), groups)
    query = group * log.candidates.n_queries + log.query
    return replace(log, candidates=log.candidates.select(queries), query=query.astype(np.int32))
