"""The gain of a policy's own lists on a click log, by every estimator that the log allows."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cuolr.errors import InputError
from cuolr.examination.from_clicks import as_lists, curves_as_dict
from cuolr.logs.clicklog import ClickLog
from cuolr.off_policy.compared_lists import ComparedLists, CountedDocuments, CountedLists
from cuolr.off_policy.estimate_gain import Estimand
from cuolr.off_policy.gain_estimate import GainByEstimator
from cuolr.off_policy.importance_gains import importance_gains
from cuolr.off_policy.interleaving import interleaving_preference
from cuolr.off_policy.intervals import UNKNOWN, sessions_needed
from cuolr.off_policy.list_distributions import RankedQueries, target_lists
from cuolr.off_policy.position_discount import weights_in_lists
from cuolr.off_policy.recommendation import ChangedQuery
from cuolr.off_policy.user_gain import UserGain, user_gain
from cuolr.off_policy.users_of_log import PlausibleUsers, UsersOfLog
from cuolr.policies.policy import RankingPolicy
from cuolr.progress import Stages
from cuolr.types import Doubles, Ints

# Queries of the largest change that are reported.
CHANGED_QUERIES = 10


@dataclass(frozen=True)
class GainOnLog:
    """What is asked.

    Attributes:
        policy: The model, or its lists of the queries.
        users: The log, and the users that were fitted to it.
        queries: The queries to evaluate on.
        k: Length of the lists.
        against: Another model; None = the logged lists.
        position_weights: [k] what a click or a reward at each rank counts; None = 1.
    """

    policy: RankingPolicy | RankedQueries
    users: UsersOfLog
    queries: Ints
    k: int
    against: RankingPolicy | None = None
    position_weights: Doubles | None = None

    @property
    def log(self) -> ClickLog:
        """The log."""
        return self.users.log


def gain_on_log(asked: GainOnLog, stages: Stages) -> dict[str, Any]:
    """The estimates, by the names of `OffPolicyEvaluation`."""
    users = asked.users
    compared = lists_to_compare(asked)
    if compared.reward.sum() <= 0 or not users.fitted:
        return {"gain": 0.0, "interval": UNKNOWN, "estimates": (), "identifiable": users.identifiable}
    progress = stages("estimating the gain", len(users.fitted))
    gains = []
    for fitted, influence in zip(users.fitted, users.influences, strict=True):
        gains.append(user_gain(fitted, influence, compared, users.counts.units))
        progress(1)
    estimates = [*_by_users(gains, users.plausible), *_by_importance(asked)]
    known = [estimate.bounds for estimate in estimates if estimate.is_decisive and estimate.is_known]
    best = next((found for found, estimate in zip(gains, estimates, strict=False) if estimate.is_known), gains[0])
    curves = users.examination
    return {
        "gain": best.gain,
        "interval": _hull(known) if known else UNKNOWN,
        "estimates": tuple(estimates),
        "identifiable": users.identifiable,
        "sessions_for_test": _sessions_for_test(asked, best),
        "sessions_for_interleaving": _sessions_for_interleaving(asked, compared, best),
        "better_click_rates": users.plausible.better_click_rates,
        "changed": tuple(_changed(asked, best)),
        "examination": tuple(tuple(row) for row in as_lists(curves.table)),
        "examination_by_context": {} if curves.by_context is None else curves_as_dict(curves.by_context),
    }


def lists_to_compare(asked: GainOnLog) -> ComparedLists:
    """The lists to compare, of the evaluated queries that users were fitted to."""
    log, counts = asked.log, asked.users.counts
    of_queries = counts.lists.select(np.isin(counts.lists.query, asked.queries))
    if not len(of_queries.query):
        raise InputError("queries: expected at least one query of the log to evaluate on, found none")
    logged = _top(of_queries, asked.k)
    pages = logged if isinstance(logged, CountedLists) else logged.pages(asked.k)
    baseline = logged if asked.against is None else target_lists(asked.against, log.candidates, pages)
    rows = np.flatnonzero(np.isin(log.query, logged.query))
    return ComparedLists(
        target=target_lists(asked.policy, log.candidates, pages),
        baseline=baseline,
        logged=logged,
        n_queries=log.candidates.n_queries,
        reward=counts.units.sums(_row_rewards(asked, rows) * log.count[rows].astype(np.float64), rows),
        sessions=counts.units.sums(log.session_count[rows].astype(np.float64), rows),
        worth=_worth(log),
        clicks=counts.clicks_by_pair(),
        query_of_pair=log.candidates.query_of_document,
        position_weights=asked.position_weights,
    )


def _row_rewards(asked: GainOnLog, rows: Ints) -> Doubles:
    """[m] the reward of the first k documents of each of these rows; of a document, if it is one of these."""
    weights, log = np.ones(asked.k) if asked.position_weights is None else asked.position_weights, asked.log
    if log.of_documents and log.page_position is not None:
        place = np.minimum(log.page_position[rows, 0], asked.k)
        of_documents: Doubles = log.rewards[rows, 0] * np.append(weights, 0.0)[place]
        return of_documents
    rewards: Doubles = (log.rewards[rows] * weights_in_lists(log.ranking[rows] >= 0, weights)).sum(axis=1)
    return rewards


def _top(lists: CountedLists | CountedDocuments, k: int) -> CountedLists | CountedDocuments:
    """The first k documents, wherever they stand on the page; if they are not in lists, those of k positions."""
    if isinstance(lists, CountedDocuments):
        return lists.select(lists.cells.position < k)
    first = np.cumsum(lists.documents >= 0, axis=1) <= k
    return replace(lists, documents=np.where(first, lists.documents, -1))


def _worth(log: ClickLog) -> Doubles:
    """[n_documents] the mean reward of a click; that of the log where there are none, 1 if clicks are the reward."""
    size = log.candidates.n_documents
    if log.reward is None:
        return np.ones(size)
    where, count = log.where, np.broadcast_to(log.count[:, None], log.where.shape)
    documents = log.documents[where]
    clicks, rewards = (
        np.bincount(documents, weights=(values * count)[where], minlength=size) for values in (log.clicks, log.reward)
    )
    mean = rewards.sum() / max(float(clicks.sum()), 1e-300)
    worth: Doubles = np.where(clicks > 0, rewards / np.maximum(clicks, 1e-300), mean)
    return worth


def _by_users(gains: list[UserGain], plausible: PlausibleUsers) -> Iterator[GainByEstimator]:
    for found in gains:
        differences = {} if plausible.comparison is None else plausible.comparison.differences
        difference = differences[found.users].mean if found.users in differences else None
        yield GainByEstimator(
            found.users,
            found.gain,
            found.interval,
            found.bounds,
            found.calibration,
            difference,
            corrections=found.corrections,
        )


def _by_importance(asked: GainOnLog) -> Iterator[GainByEstimator]:
    """Importance sampling, if the log has propensities; it compares with the logged lists only."""
    log = asked.log
    if log.logging_propensity is not None and asked.against is None:
        evaluated = log.select(np.flatnonzero(np.isin(log.query, asked.queries)))
        weights = None if asked.position_weights is None else tuple(asked.position_weights)
        yield from importance_gains(asked.policy, evaluated, Estimand(k=asked.k, position_weights=weights))


def _hull(intervals: list[tuple[float, float]]) -> tuple[float, float]:
    return min(low for low, _ in intervals), max(high for _, high in intervals)


def _sessions_for_test(asked: GainOnLog, found: UserGain) -> int | None:
    """In each arm of an A/B test, both of which have the variance of a logged session's reward.

    None if documents were counted: the variance of a session is not known then.
    """
    if asked.log.of_documents:
        return None
    evaluated = np.flatnonzero(np.isin(asked.log.query, asked.queries))
    count, reward = asked.log.count[evaluated], _row_rewards(asked, evaluated)
    sessions = float(count.sum())
    mean = float(reward @ count) / sessions
    variance = float(((reward - mean) ** 2) @ count) / sessions
    return sessions_needed(found.gain * mean, 2 * variance)


def _sessions_for_interleaving(asked: GainOnLog, compared: ComparedLists, found: UserGain) -> int | None:
    """None if documents were counted: it takes lists to interleave."""
    if isinstance(compared.baseline, CountedDocuments):
        return None
    return sessions_needed(*interleaving_preference(compared, asked.users.response_of(found.users)))


def _changed(asked: GainOnLog, found: UserGain) -> Iterator[ChangedQuery]:
    """The queries with the largest change, by traffic."""
    log, changes = asked.log, found.changes
    sessions = np.bincount(log.query, weights=log.session_count, minlength=log.candidates.n_queries)
    order = np.argsort(-np.abs(changes), kind="stable")[:CHANGED_QUERIES]
    for query in order[changes[order] != 0]:
        yield ChangedQuery(str(log.candidates.query_ids[query]), int(sessions[query]), float(changes[query]))
