"""Estimates the gain of a policy over production from a log with known propensities."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from cuolr.config import Range, check_arguments
from cuolr.data.normalise import Normaliser
from cuolr.errors import InputError
from cuolr.logs.aggregate import aggregate
from cuolr.logs.changed_candidates import MANY_QUERIES
from cuolr.logs.clicklog import ClickLog, Outcome
from cuolr.off_policy.estimators.off_policy_estimator import OffPolicyEstimator, off_policy_estimator
from cuolr.off_policy.gain_estimate import GainEstimate
from cuolr.off_policy.intervals import session_groups
from cuolr.off_policy.list_distributions import FittedRanker, ListDistribution, Policy, distribution_of, policy_of
from cuolr.off_policy.logged_lists import ListProbabilities, LoggedLists, check_probabilities
from cuolr.off_policy.paired_gain import paired_gain
from cuolr.off_policy.support import ShownLists, Support, support_of
from cuolr.types import Doubles, Floats, IntegerArray, Ints

# Name of the column that keeps the groups apart when sessions are aggregated.
UNIT = "unit"


@dataclass(frozen=True)
class Estimand:
    """What is estimated: the mean over sessions of Σ_k weight_k · reward_k, on the policy's own top k.

    Attributes:
        reward: `clicks`, or the log's `reward`; None = the reward, or clicks if the log has none, as learners maximise.
        k: Length of the lists; None = as in the log.
        position_weights: [k] the weight of each position, such as 1 / log2(1 + position); None = 1.
        reward_limits: Lowest and highest mean reward of a document that the log cannot say anything about; None = 0,
            or the lowest of the log if that is negative, and the highest of the log.
    """

    reward: Outcome | None = None
    k: int | None = None
    position_weights: Sequence[float] | None = None
    reward_limits: tuple[float, float] | None = None


# What learners maximise, on lists as long as those of the log.
REWARD_OF_LOG = Estimand()


def estimate_gain(
    policy: Policy | FittedRanker,
    log: ClickLog,
    estimator: OffPolicyEstimator | str = "reward-interaction-ips",
    estimand: Estimand = REWARD_OF_LOG,
    logging_policy: Policy | None = None,
    control_variate: bool = True,
) -> GainEstimate:
    """Estimate what a policy's own lists would earn, as a gain over the logged ones.

    The log must not have been used to train the policy: its own clicks would flatter it.

    Args:
        policy: A policy or a fitted `Ranker`, which show one list per query, or one that draws its lists.
        log: Raw sessions, or an aggregated log, with `logging_propensity`.
        estimator: The estimator, or its registered name.
        estimand: What is estimated.
        logging_policy: The logging policy, for estimators that need its probabilities of documents at positions. The
            log's propensities remain those of the lists. None = they are estimated, see `logged_lists`.
        control_variate: See `paired_gain`.
    """
    chosen = off_policy_estimator(estimator) if isinstance(estimator, str) else estimator
    target = policy if isinstance(policy, Policy) else policy_of("policy", policy)
    by_position = chosen.level == "position"
    return paired_gain(logged_lists(target, log, estimand, logging_policy, by_position), chosen, control_variate)


def logged_lists(
    policy: Policy,
    log: ClickLog,
    estimand: Estimand = REWARD_OF_LOG,
    logging_policy: Policy | None = None,
    marginals: bool = False,
) -> LoggedLists:
    """The lists of a log, aggregated, with the probabilities of both policies; the arguments are those above.

    Args:
        policy: The policy to evaluate.
        log: The log.
        estimand: What is estimated.
        logging_policy: The logging policy, if known.
        marginals: Whether probabilities of documents at positions are needed. Without the logging policy they are the
            shares of the query's sessions that show the document there: what was not shown there has no support.
    """
    rows = _prepared(log, estimand)
    weights = position_weights(estimand, rows.k)
    queries, number = np.unique(rows.query, return_inverse=True)
    unit = rows.context.get(UNIT, number)
    assert rows.logging_propensity is not None
    lists = distribution_of(policy, rows.candidates, queries, rows.k)
    logging = ListProbabilities(rows.logging_propensity.astype(np.float64))
    if logging_policy is not None:
        known = distribution_of(logging_policy, rows.candidates, queries, rows.k)
        logging = replace(logging, marginal=known.probabilities(rows.query, rows.ranking, marginal=True).marginal)
    elif marginals:
        logging = replace(logging, marginal=_shares_of_sessions(rows))
    target = lists.probabilities(rows.query, rows.ranking, marginal=logging.marginal is not None)
    # In the precision of the log's propensities, so that a policy like the logging policy has weights of 1.
    rounded = target.given_above.astype(rows.logging_propensity.dtype).astype(np.float64)
    rewards = rewards_of(rows, estimand)
    low, high = _limits(log, estimand)
    return LoggedLists(
        unit=unit.astype(np.int64),
        where=rows.where,
        reward=np.where(rows.where, rewards * weights, 0.0),
        count=rows.count,
        logging=logging,
        target=replace(target, given_above=rounded),
        features=DocumentsOfLists(rows, lists),
        support=_support(rows, lists, queries, logging),
        reward_limits=(low * weights, high * weights),
    )


def _shares_of_sessions(rows: ClickLog) -> Doubles:
    """[M, K] the share of a query's sessions with a document at the position that show this one; 1 where nothing is."""
    shares = np.ones(rows.where.shape)
    for position, where in enumerate(rows.where.T):
        count = rows.count[where]
        shown, total = (
            np.bincount(key, weights=count)[key] for key in (rows.documents[where, position], rows.query[where])
        )
        shares[where, position] = shown / total
    return shares


@dataclass(frozen=True)
class DocumentsOfLists:
    """The scaled features of logged lists, position by position.

    Attributes:
        rows: The aggregated log.
        lists: The target policy's lists.
    """

    rows: ClickLog
    lists: ListDistribution

    @cached_property
    def features(self) -> Floats:
        """[n_documents, F] scaled to [−1, 1]."""
        candidates = self.rows.candidates
        return Normaliser.fit("log-min-max", candidates).apply(candidates).features

    @cached_property
    def documents(self) -> Ints:
        """[M, K] the document at each position."""
        return self.rows.documents

    def shown(self, position: int, rows: Ints) -> tuple[Floats, Floats]:
        """See `ListFeatures`."""
        return self.features[self.documents[rows, position]], self._mean_above(self.features, position, rows)

    def projected(self, position: int, of_document: Doubles, of_above: Doubles) -> tuple[Doubles, Doubles]:
        """See `ListFeatures`; documents are projected before they are put into lists: most are in many."""
        rows, every = self.rows, np.arange(len(self.rows))
        values = self.features @ of_document
        above = self._mean_above(self.features @ of_above, position, every)
        expected = self.lists.expected_values(rows.query, rows.ranking, position, values)
        return values[self.documents[:, position]] + above, expected + above

    def _mean_above(self, values: npt.NDArray[Any], position: int, rows: Ints) -> npt.NDArray[Any]:
        """[R, V] the mean of the documents' values [n_documents, V] above a position."""
        documents, where = self.documents[rows], self.rows.where[rows]
        above = np.zeros((len(rows), values.shape[1]), values.dtype)
        for higher in range(position):
            above += values[documents[:, higher]] * where[:, higher, None]
        above /= max(position, 1)
        return above


def _prepared(log: ClickLog, estimand: Estimand) -> ClickLog:
    """One row per distinct list, and group of sessions if there are few queries; shown documents first."""
    if log.logging_propensity is None:
        raise InputError(
            "log: expected the logging policy's probability of each shown document (logging_propensity), found none"
        )
    rewards_of(log, estimand)
    row = "session" if log.of_sessions else "row"
    check_probabilities("logging_propensity", log.logging_propensity, log.where, row=row)
    k = log.k if estimand.k is None else estimand.k
    check_arguments(k=(k, Range(1, log.k)))
    shown = log.select(np.flatnonzero(log.where.any(axis=1)))
    if not len(shown):
        raise InputError("expected a log that shows documents, found none in any session")
    names = ("ranking", "clicks", "logging_propensity", "reward")
    columns: dict[str, Any] = {name: shown.columns[name][:, :k] for name in names if name in shown.columns}
    if (shown.where[:, 1:] > shown.where[:, :-1]).any():
        order = np.argsort(~shown.where, axis=1, kind="stable")[:, :k]
        columns = {name: np.take_along_axis(shown.columns[name], order, axis=1) for name in columns}
    few = len(np.unique(shown.query)) < MANY_QUERIES and shown.of_sessions
    context = {UNIT: session_groups(len(shown))} if few else {}
    plain = replace(shown, **columns, examination=None, timestamp=None, page_position=None, context=context)
    return aggregate(plain)


def rewards_of(log: ClickLog, estimand: Estimand) -> npt.NDArray[Any]:
    """[M, K] the clicks or the rewards of a log."""
    if estimand.reward == "clicks":
        return log.clicks
    if estimand.reward == "reward" and log.reward is None:
        raise InputError("log: expected a column of rewards (reward), found none; estimate clicks instead")
    return log.rewards


def position_weights(estimand: Estimand, k: int) -> Doubles:
    """[k] the weight of each position."""
    if estimand.position_weights is None:
        return np.ones(k)
    weights = np.asarray(estimand.position_weights, np.float64)
    if weights.shape != (k,) or not (np.isfinite(weights) & (weights >= 0)).all():
        found = estimand.position_weights
        raise InputError(f"position_weights: expected {k} finite numbers >= 0, one per position, found {found}")
    return weights


def _limits(log: ClickLog, estimand: Estimand) -> tuple[float, float]:
    if estimand.reward_limits is not None:
        low, high = estimand.reward_limits
        if not (np.isfinite(low) and np.isfinite(high) and low <= high):
            raise InputError(f"reward_limits: expected two finite numbers, low <= high, found {low} and {high}")
        return low, high
    seen = rewards_of(log, estimand)[log.where]
    return min(0.0, float(seen.min())), max(0.0, float(seen.max()))


def _support(rows: ClickLog, lists: ListDistribution, queries: IntegerArray, logging: ListProbabilities) -> Support:
    sessions = np.bincount(rows.query, weights=rows.count, minlength=rows.candidates.n_queries)
    drawn, ranking = lists.sample(queries)
    share = sessions / np.maximum(np.bincount(drawn, minlength=len(sessions)), 1)
    target = ShownLists(drawn, ranking, share[drawn])
    logged = ShownLists(rows.query, rows.ranking, rows.count.astype(np.float64))
    return support_of(logged, target, logging.given_above, logging.marginal)
