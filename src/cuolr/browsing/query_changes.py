"""The estimated change in clicks, or reward, of each query, if the model's list takes the place of production's."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from cuolr.browsing.document_evidence import DocumentEvidence
from cuolr.off_policy.compared_lists import ComparedLists, CountedLists
from cuolr.off_policy.gain_on_log import GainOnLog, lists_to_compare
from cuolr.off_policy.judgments import NO_EXAMINATIONS, score_interval
from cuolr.off_policy.user_gain import STEP as SHARED_STEP
from cuolr.off_policy.users.fitted_users import FittedUsers, Influence, UserResponse
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
        error: [n_queries] its standard error; NaN also where only the change was asked for.
        baseline: [n_queries] expected clicks or reward of the logged lists.
        users: The click model of the users who see the lists; None = no users could be fitted.
    """

    change: Doubles
    error: Doubles
    baseline: Doubles
    users: str | None

    @classmethod
    def estimate(cls, asked: GainOnLog, evidence: DocumentEvidence | None = None) -> Self:
        """Run the users that explain the log best forward over both lists, as `cuolr assess` does.

        The error is by the delta method. It has two parts: that of the documents' attractiveness, given how users
        examine, and that of what all queries share, such as examination, by its influence function. A document that
        the log never shows has the mean attractiveness of the others, with the spread of these as its error.

        Args:
            asked: The model, the users and the queries.
            evidence: What the log says about each document, for the errors; None = without errors, which take longer.
        """
        n_queries = asked.log.candidates.n_queries
        unknown = np.full(n_queries, np.nan)
        known = np.isin(asked.queries, asked.users.counts.queries)
        if not asked.users.fitted or not known.any():
            return cls(unknown, unknown, unknown, None)
        compared, fitted = lists_to_compare(asked), asked.users.fitted[0]
        response = fitted.response()
        variance = unknown
        if evidence is not None:
            of_shared = _variances_of_shared(compared, fitted, asked.users.influences[0])
            variance = _variances(compared, response, evidence) + of_shared
        evaluated = np.isin(np.arange(n_queries), compared.baseline.query)
        change, error, baseline = (
            np.where(evaluated, values, np.nan)
            for values in (
                compared.changes(response),
                np.sqrt(variance),
                compared.by_query(compared.baseline, response),
            )
        )
        return cls(change, error, baseline, fitted.name)

    def interval(self, query: int) -> tuple[float, float]:
        """The 95 % interval of the change of a query."""
        half = QUANTILE * float(self.error[query])
        return float(self.change[query]) - half, float(self.change[query]) + half


def _variances_of_shared(compared: ComparedLists, users: FittedUsers, influence: Influence) -> Doubles:
    """[n_queries] the variance of the change by the parameters that all queries share: Σ_g (∂ change · shift_g)²."""
    shifts = influence.shifts
    # In each parameter or, if there are fewer groups than parameters, in the direction of each group.
    by_parameter = users.size <= len(shifts)
    directions = np.eye(users.size) if by_parameter else shifts
    at_estimate = compared.changes(users.response(np.zeros(users.size)))
    variance, derivative = np.zeros(compared.n_queries), np.zeros((len(directions), compared.n_queries))
    for number, direction in enumerate(directions):
        if not direction.any():
            continue
        step = SHARED_STEP / np.abs(direction).max()
        derivative[number] = (compared.changes(users.response(step * direction)) - at_estimate) / step
    for effect in shifts @ derivative if by_parameter else derivative:
        variance += effect**2
    return variance


def _variances(compared: ComparedLists, response: UserResponse, evidence: DocumentEvidence) -> Doubles:
    """[n_queries] the variance of the change: Σ_d (∂ change / ∂ α_d)² · Var(α̂_d)."""
    alpha, query = response.rates.attractiveness, evidence.counts.lists.candidates.query_of_document
    error, at_estimate = _errors(response, evidence)[evidence.first], compared.changes(response)
    variance = np.zeros(compared.n_queries)
    for pairs in _one_of_each_query(compared, query):
        step = np.where(alpha[pairs] > 0.5, -STEP, STEP)
        moved = alpha.copy()
        moved[pairs] += step
        slope = (compared.changes(response, moved) - at_estimate)[query[pairs]] / step
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
