"""The estimated change in clicks, or reward, of each query, if the model's list takes the place of production's."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from cuolr.browsing.document_evidence import DocumentEvidence
from cuolr.off_policy.compared_lists import ComparedLists, CountedLists
from cuolr.off_policy.gain_on_log import GainOnLog, lists_to_compare
from cuolr.off_policy.judgments import NO_EXAMINATIONS, score_interval
from cuolr.off_policy.users.fitted_users import UserResponse
from cuolr.types import Doubles, Ints

# Step of the derivative in an attractiveness.
STEP = 0.01
# Documents of a query whose errors count, at most: those that are shown most often.
MAX_DOCUMENTS = 40
# Standard errors in half an interval of 95 %.
QUANTILE = 1.959964
# Largest standard error of an attractiveness, which is between 0 and 1.
MAX_ERROR = 0.5


@dataclass(frozen=True)
class QueryChanges:
    """The change of each query over all its sessions in the log; NaN where it is not estimated.

    Attributes:
        change: [n_queries] expected clicks, or reward, of the model's lists minus those of the logged ones.
        error: [n_queries] its standard error.
        baseline: [n_queries] expected clicks or reward of the logged lists.
        users: The click model of the users who see the lists; None = no users could be fitted.
    """

    change: Doubles
    error: Doubles
    baseline: Doubles
    users: str | None

    @classmethod
    def estimate(cls, asked: GainOnLog, evidence: DocumentEvidence) -> Self:
        """Run the users that explain the log best forward over both lists, as `cuolr assess` does.

        The error is that of the documents' attractiveness, by the delta method. A document that the log never shows has
        the mean attractiveness of the others, with the spread of these as its error. That users and their examination
        are estimated, too, is left out.

        Args:
            asked: The model, the users and the queries.
            evidence: What the log says about each document.
        """
        n_queries = asked.log.candidates.n_queries
        unknown = np.full(n_queries, np.nan)
        known = np.isin(asked.queries, asked.users.counts.queries)
        if not asked.users.fitted or not known.any():
            return cls(unknown, unknown, unknown, None)
        compared, fitted = lists_to_compare(asked), asked.users.fitted[0]
        response = fitted.response()
        both = [compared.by_query(lists, response) for lists in (compared.target, compared.baseline)]
        variance = _variances(compared, response, evidence)
        evaluated = np.isin(np.arange(n_queries), compared.baseline.query)
        change, error, baseline = (
            np.where(evaluated, values, np.nan) for values in (both[0] - both[1], np.sqrt(variance), both[1])
        )
        return cls(change, error, baseline, fitted.name)

    def interval(self, query: int) -> tuple[float, float]:
        """The 95 % interval of the change of a query."""
        half = QUANTILE * float(self.error[query])
        return float(self.change[query]) - half, float(self.change[query]) + half


def _variances(compared: ComparedLists, response: UserResponse, evidence: DocumentEvidence) -> Doubles:
    """[n_queries] the variance of the change: Σ_d (∂ change / ∂ α_d)² · Var(α̂_d)."""

    def change(attractiveness: Doubles) -> Doubles:
        both = (compared.by_query(lists, response, attractiveness) for lists in (compared.target, compared.baseline))
        return next(both) - next(both)

    alpha, query = response.rates.attractiveness, evidence.counts.lists.candidates.query_of_document
    error, at_estimate = _errors(response, evidence)[evidence.first], change(alpha)
    variance = np.zeros(compared.n_queries)
    for pairs in _one_of_each_query(compared, query):
        step = np.where(alpha[pairs] > 0.5, -STEP, STEP)
        moved = alpha.copy()
        moved[pairs] += step
        slope = (change(moved) - at_estimate)[query[pairs]] / step
        variance[query[pairs]] += (slope * error[pairs]) ** 2
    return variance


def _one_of_each_query(compared: ComparedLists, query: Ints) -> Iterator[Ints]:
    """The documents of the lists: the most shown of each query, then the second of each, and so on.

    Args:
        compared: The lists.
        query: [n_documents] the query of each document.
    """
    shown = np.zeros(len(query))
    for lists in (compared.target, compared.baseline):
        assert isinstance(lists, CountedLists)
        where = lists.documents >= 0
        sessions = np.broadcast_to(lists.count[:, None], where.shape)[where]
        shown += np.bincount(lists.documents[where], sessions, len(query))
    used = np.flatnonzero(shown)
    order = used[np.lexsort((used, -shown[used], query[used]))]
    place = np.arange(len(order)) - np.searchsorted(query[order], query[order])
    for number in range(min(int(place.max(initial=-1)) + 1, MAX_DOCUMENTS)):
        yield order[place == number]


def _errors(response: UserResponse, evidence: DocumentEvidence) -> Doubles:
    """[n_documents] the standard error of α̂: half the interval of the corrected rate, on the scale of the users."""
    rows = np.flatnonzero((evidence.examinations > NO_EXAMINATIONS) & response.rates.known)
    spread = float(response.rates.attractiveness[rows].std()) if len(rows) else 1.0
    errors = np.full(len(evidence.clicks), spread)
    if not len(rows):
        return errors
    clicks, examinations, squares = evidence.clicks[rows], evidence.examinations[rows], evidence.squares[rows]
    low, high = score_interval(clicks, examinations, squares)
    scale = float(response.rates.attractiveness[rows] @ clicks) / max(float(clicks @ (clicks / examinations)), 1e-300)
    errors[rows] = np.minimum(scale * (high - low) / (2 * QUANTILE), MAX_ERROR)
    return errors
