"""Off-policy evaluation of a model on a click log, without labels."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from cuolr.errors import InputError, require_type
from cuolr.examination.from_clicks import ExaminationModel, as_lists, curves_as_dict
from cuolr.examination.identifiability import Identifiability
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.counts import ClickCounts
from cuolr.logs.identity import digest_of_clicks
from cuolr.logs.session_groups import in_groups
from cuolr.logs.time_window import sessions_between
from cuolr.off_policy.intervals import ratio_interval
from cuolr.off_policy.overlap import logging_policy_member, logging_policy_share, overlap_with_log
from cuolr.off_policy.recommendation import OffPolicyEvaluation
from cuolr.off_policy.reordering import rewards_by_query
from cuolr.policies.ensemble_policy import EnsemblePolicy
from cuolr.policies.policy import RankingPolicy
from cuolr.progress import Stages, unseen_stages
from cuolr.training.hold_out import MANY_QUERIES, held_out_queries, held_out_sessions
from cuolr.types import Ints

# Where an argument comes from, for the error of another type.
OF_LOGS = "load_click_log, import_log and simulate return one"
# Default length of the compared rankings; shorter if the lists of the log are.
DEFAULT_K = 10
# Number of queries used to measure the share of the logging policy in the score.
SHARE_QUERIES = 200
# Number of groups of sessions that the interval is over, if there are few queries; and the seed of the groups.
SESSION_GROUPS, GROUPS_SEED = 30, 0


@dataclass(frozen=True)
class EvaluatedQueries:
    """The queries of a log to evaluate a model on.

    Attributes:
        queries: The queries; None = all.
        trained_on: Whether the model was trained on their clicks.
        held_out: Whether training held them out.
        examination: The examination that the model estimated from this log; None = estimate it now.
        during_training: Number of sessions from the time of the training log, which the model may have learned from.
    """

    queries: Ints | None = None
    trained_on: bool = False
    held_out: bool = False
    examination: ExaminationModel | None = None
    during_training: int = 0


# For a log that the model was not trained on.
ALL_QUERIES = EvaluatedQueries()


class FittedRanker(Protocol):
    """A fitted `Ranker`."""

    @property
    def policy_(self) -> RankingPolicy:
        """What it learned."""


def assess(
    policy: RankingPolicy | FittedRanker,
    log: ClickLog,
    k: int | None = None,
    provenance: Mapping[str, Any] | None = None,
    stages: Stages = unseen_stages,
) -> OffPolicyEvaluation:
    """Evaluate a model on a log: overlap with the logged lists, and the gain in clicks or reward from re-ordering them.

    On the log that the model was trained on, only the queries, or the sessions, that training held out are used. If
    training validated on labels, nothing was held out: all are used, and `trained_on_these_queries` is set. Training
    sessions within another log are recognised by their time, if both logs have timestamps; otherwise remove them first.

    Args:
        policy: The model: a policy, or a fitted `Ranker`.
        log: Raw sessions, or an aggregated log, for which examination is estimated by position only.
        k: Length of the rankings that are compared with the log; None = 10, or the length of its lists if shorter.
        provenance: Provenance of the model; None = as it was trained or loaded with. If it names no log, `log` is new
            to the model.
        stages: Told of the progress.
    """
    require_type("log", log, ClickLog, OF_LOGS)
    policy = policy if isinstance(policy, RankingPolicy) else policy.policy_
    known = policy.provenance if provenance is None else provenance
    return evaluate_off_policy(policy, *_new_to(policy, log, known), k, stages)


def evaluate_off_policy(
    policy: RankingPolicy,
    log: ClickLog,
    on: EvaluatedQueries = ALL_QUERIES,
    k: int | None = None,
    stages: Stages = unseen_stages,
) -> OffPolicyEvaluation:
    """Evaluate a model on given queries of a log; see `assess`."""
    counts = ClickCounts.of(log, stages)
    lists = counts.lists
    k = min(DEFAULT_K, lists.k) if k is None else min(k, int(log.candidates.sizes.max()))
    queries = np.unique(lists.query[lists.where.any(axis=1)]).astype(np.int64)
    if not len(queries):
        raise InputError("expected a log that shows documents, found none in any session")
    many = len(queries) >= MANY_QUERIES
    if on.queries is not None:
        queries = queries[np.isin(queries, on.queries)]
    if not len(queries):
        raise InputError("queries: expected at least one query of the log to evaluate on, found none")
    examination = on.examination or ExaminationModel.fit(counts, stages=stages)
    groups = 0 if many or log.aggregated else min(SESSION_GROUPS, len(log))
    units, rows = (counts, queries) if groups == 0 else _session_groups(log, queries, groups)
    logged, reordered = rewards_by_query(policy, units, examination.expected_examinations(units), rows, stages)
    curves = examination.by_context
    gain, interval = ratio_interval(reordered - logged, logged)
    never_shown, overlap = overlap_with_log(policy, lists, queries, k, stages)
    member = logging_policy_member(policy)
    return OffPolicyEvaluation(
        queries=len(queries),
        k=k,
        trained_on_these_queries=on.trained_on,
        never_shown=never_shown,
        overlap=overlap,
        gain=gain,
        interval=interval,
        logging_policy_share=logging_policy_share(policy, log.candidates.select(queries[:SHARE_QUERIES])),
        logging_policy_overlap=None if member is None else overlap_with_log(member, lists, queries, k, stages)[1],
        identifiable=Identifiability.of(counts).identifiable,
        held_out=on.held_out,
        outcome=log.outcome,
        session_groups=groups,
        sessions_during_training=on.during_training,
        examination=tuple(tuple(row) for row in as_lists(examination.table)),
        examination_by_context={} if curves is None else curves_as_dict(curves),
    )


def _session_groups(log: ClickLog, queries: Ints, groups: int) -> tuple[ClickCounts, Ints]:
    """The sessions of some queries, dealt to groups at random, and the queries that stand for them.

    The interval of a log of few queries is over groups of their sessions: it holds for these queries.
    """
    shown = log.select(np.flatnonzero(np.isin(log.query, queries) & log.where.any(axis=1)))
    group = np.random.default_rng(GROUPS_SEED).permutation(len(shown)) % groups
    counts = ClickCounts.of(in_groups(shown, group, groups))
    return counts, np.unique(counts.lists.query).astype(np.int64)


def _new_to(policy: RankingPolicy, log: ClickLog, provenance: Mapping[str, Any]) -> tuple[ClickLog, EvaluatedQueries]:
    """What training held out if this is the model's training log, otherwise all of it."""
    trained_on = provenance.get("log", {})
    if trained_on.get("clicks_sha256") != digest_of_clicks(log):
        during = sessions_between(log, str(trained_on.get("first", "")), str(trained_on.get("last", "")))
        return log, EvaluatedQueries(during_training=during)
    settings = provenance["settings"]
    examination = None
    if isinstance(policy, EnsemblePolicy) and policy.examination is not None and not log.aggregated:
        examination = ExaminationModel(policy.examination, by_context=policy.by_context)
    validated_by, training = settings["validated_by"], settings["training"]
    # A model that it started from may have been trained on what is held out now.
    seen = bool(provenance.get("warm_start", {}).get("overlaps", False))
    if "held_out_queries" in validated_by:
        queries = held_out_queries(log, training["held_out"], training["seed"])
        return log, EvaluatedQueries(queries, seen, held_out=True, examination=examination)
    if "held_out_sessions" in validated_by and not log.aggregated:
        rows = held_out_sessions(log, training["held_out"], training["seed"])
        return log.select(rows), EvaluatedQueries(trained_on=seen, held_out=True, examination=examination)
    return log, EvaluatedQueries(trained_on=True, examination=examination)
