"""Off-policy evaluation of a model on a click log, without labels."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from cuolr.errors import InputError
from cuolr.examination.from_clicks import ExaminationModel
from cuolr.examination.identifiability import identifiable
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.counts import ClickCounts
from cuolr.logs.identity import digest_of_clicks
from cuolr.off_policy.intervals import ratio_interval
from cuolr.off_policy.overlap import logging_policy_member, logging_policy_share, overlap_with_log
from cuolr.off_policy.recommendation import OffPolicyEvaluation
from cuolr.off_policy.reordering import rewards_by_query
from cuolr.policies.ensemble_policy import EnsemblePolicy
from cuolr.policies.policy import RankingPolicy
from cuolr.training.hold_out import held_out_queries
from cuolr.types import Ints

# Default length of the compared rankings; shorter if the lists of the log are.
DEFAULT_K = 10
# Number of queries used to measure the share of the logging policy in the score.
SHARE_QUERIES = 200


@dataclass(frozen=True)
class EvaluatedQueries:
    """The queries of a log to evaluate a model on.

    Attributes:
        queries: The queries; None = all.
        trained_on: Whether the model was trained on their clicks.
        held_out: Whether training held them out.
        examination: The examination that the model estimated from this log; None = estimate it now.
    """

    queries: Ints | None = None
    trained_on: bool = False
    held_out: bool = False
    examination: ExaminationModel | None = None


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
) -> OffPolicyEvaluation:
    """Evaluate a model on a log: overlap with the logged lists, and the gain in clicks or reward from re-ordering them.

    On the log that the model was trained on, only the queries that training held out are used. If training validated on
    labels, no queries were held out: all are used, and `trained_on_these_queries` is set. Training sessions within a
    larger log are not recognised: remove them first.

    Args:
        policy: The model: a policy, or a fitted `Ranker`.
        log: Raw sessions, or an aggregated log, for which examination is estimated by position only.
        k: Length of the rankings that are compared with the log; None = 10, or the length of its lists if shorter.
        provenance: Provenance of the model; None = as it was trained or loaded with. If it names no log, `log` is new
            to the model.
    """
    policy = policy if isinstance(policy, RankingPolicy) else policy.policy_
    known = policy.provenance if provenance is None else provenance
    return evaluate_off_policy(policy, log, k, _queries_to_evaluate(policy, log, known))


def evaluate_off_policy(
    policy: RankingPolicy, log: ClickLog, k: int | None = None, on: EvaluatedQueries = ALL_QUERIES
) -> OffPolicyEvaluation:
    """Evaluate a model on given queries of a log; see `assess`."""
    counts = ClickCounts.of(log)
    lists = counts.lists
    k = min(DEFAULT_K, lists.k) if k is None else min(k, int(log.candidates.sizes.max()))
    queries = np.unique(lists.query[lists.where.any(axis=1)]).astype(np.int64)
    if not len(queries):
        raise InputError("expected a log that shows documents, found none in any session")
    if on.queries is not None:
        queries = queries[np.isin(queries, on.queries)]
    if not len(queries):
        raise InputError("queries: expected at least one query of the log to evaluate on, found none")
    examination = on.examination or ExaminationModel.fit(counts)
    logged, reordered = rewards_by_query(policy, counts, examination.expected_examinations(counts), queries)
    gain, interval = ratio_interval(reordered - logged, logged)
    never_shown, overlap = overlap_with_log(policy, lists, queries, k)
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
        logging_policy_overlap=None if member is None else overlap_with_log(member, lists, queries, k)[1],
        identifiable=identifiable(counts),
        held_out=on.held_out,
        outcome=log.outcome,
        examination=tuple(tuple(row) for row in examination.as_dict()["examination"]),
    )


def _queries_to_evaluate(policy: RankingPolicy, log: ClickLog, provenance: Mapping[str, Any]) -> EvaluatedQueries:
    """The queries that training held out if this is the model's training log, otherwise all queries."""
    trained_on = provenance.get("log", {}).get("clicks_sha256")
    if trained_on is None or trained_on != digest_of_clicks(log):
        return ALL_QUERIES
    settings = provenance["settings"]
    examination = None
    if isinstance(policy, EnsemblePolicy) and policy.examination is not None and not log.aggregated:
        examination = ExaminationModel(policy.examination)
    if "held_out_queries" not in settings["validated_by"]:
        return EvaluatedQueries(trained_on=True, examination=examination)
    training = settings["training"]
    queries = held_out_queries(log, training["held_out"], training["seed"])
    return EvaluatedQueries(queries, held_out=True, examination=examination)
