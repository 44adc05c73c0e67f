"""Off-policy evaluation of a model on a click log, without labels."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuolr.config import Range, check_arguments
from cuolr.data.feature_tables import first_variants
from cuolr.errors import InputError, require_type
from cuolr.examination.from_clicks import ExaminationModel
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.log_meta import digest_of_clicks
from cuolr.logs.page_positions import page_width
from cuolr.logs.time_window import sessions_between
from cuolr.off_policy.gain_on_log import GainOnLog, gain_on_log
from cuolr.off_policy.importance_gains import check_propensities
from cuolr.off_policy.list_distributions import FittedRanker, RankedQueries, policy_of
from cuolr.off_policy.position_discount import Discount, discount_weights
from cuolr.off_policy.recommendation import OffPolicyEvaluation
from cuolr.off_policy.users_of_log import UsersOfLog
from cuolr.policies.ensemble_policy import EnsemblePolicy
from cuolr.policies.policy import RankingPolicy
from cuolr.progress import Stages, no_stages
from cuolr.training.hold_out import held_out_queries, held_out_sessions
from cuolr.types import Candidates, Doubles, Ints


def shown_shares(lists: ClickLog) -> Doubles:
    """[n_documents] the share of its query's sessions that show each document; 0 for queries without sessions.

    Args:
        lists: The log, raw, counted or aggregated.
    """
    candidates = lists.candidates
    row, _ = np.nonzero(lists.where)
    documents = lists.documents[lists.where]
    # A variant counts as shown if its document was.
    first = first_variants(candidates)
    impressions = np.bincount(first[documents], weights=lists.count[row], minlength=candidates.n_documents)[first]
    sessions = np.bincount(lists.query, weights=lists.session_count, minlength=candidates.n_queries)
    shares: Doubles = impressions / np.maximum(sessions, 1)[candidates.query_of_document]
    return shares


def overlap_with_log(ranked: RankedQueries, candidates: Candidates, shares: Doubles) -> tuple[float, float]:
    """How much of a policy's top k the log shows.

    Args:
        ranked: The policy's lists of queries, each with sessions in the log.
        candidates: The documents of the log.
        shares: [n_documents] see `shown_shares`.

    Returns:
        never_shown: Share of the ranked documents that the log never shows for their query.
        overlap: Share of their query's sessions that show a ranked document, averaged over ranked documents.
    """
    where = ranked.lists >= 0
    share = shares[(candidates.offsets[:-1, None] + ranked.lists)[where]]
    return float((share == 0).mean()), float(share.mean())


def logging_policy_member(policy: RankingPolicy) -> EnsemblePolicy | None:
    """The members of an ensemble that model the logging policy, as one ranker; None if there are none."""
    if not isinstance(policy, EnsemblePolicy) or not policy.logging_policy_members:
        return None
    members = [policy.members[i] for i in policy.logging_policy_members]
    return EnsemblePolicy(members, [1.0] * len(members))


def logging_policy_share(policy: RankingPolicy, candidates: Candidates) -> float | None:
    """The logging-policy members' share of an ensemble's score, in standard deviations; None if there are none."""
    if not isinstance(policy, EnsemblePolicy) or not policy.logging_policy_members:
        return None
    scores = np.zeros((2, candidates.n_documents))
    candidates = policy.normaliser.as_fitted(candidates, policy.n_features)
    for rows, scaled in policy.normaliser.in_parts(candidates):
        if not len(scaled):
            continue
        for i, (member, weight) in enumerate(zip(policy.members, policy.weights, strict=True)):
            scores[int(i in policy.logging_policy_members), rows] += weight * member.score_scaled(scaled)
    of_clicks, of_logging_policy = scores.std(axis=1)
    total = of_clicks + of_logging_policy
    return float(of_logging_policy / total) if total > 0 else None


# Where an argument comes from, for the error of another type.
OF_LOGS = "load_click_log, import_log and simulate return one"
# Number of queries used to measure the share of the logging policy in the score.
SHARE_QUERIES = 200


@dataclass(frozen=True)
class EvaluatedQueries:
    """The queries of a log to evaluate a model on.

    Attributes:
        queries: The queries; None = all.
        trained_on: Whether the model was trained on their clicks.
        held_out: Whether training held them out.
        examination: The examination that the model estimated from this log, for what the log alone does not identify;
            None = estimate it now.
        during_training: Number of sessions from the time of the training log, which the model may have learned from.
    """

    queries: Ints | None = None
    trained_on: bool = False
    held_out: bool = False
    examination: ExaminationModel | None = None
    during_training: int = 0


# For a log that the model was not trained on.
ALL_QUERIES = EvaluatedQueries()


def assess(
    policy: RankingPolicy | FittedRanker,
    log: ClickLog,
    k: int | None = None,
    provenance: Mapping[str, Any] | None = None,
    stages: Stages = no_stages,
    against: RankingPolicy | FittedRanker | None = None,
    users: UsersOfLog | None = None,
    discount: Discount = None,
) -> OffPolicyEvaluation:
    """Evaluate a model on a log: what its own top k would earn, against the logged lists, and overlap with these.

    Users of several click models are fitted to the log and run forward over the model's lists. Those that explain
    held-out sessions about as well as the best have a say in the recommendation; so has importance sampling, if the log
    has propensities.

    On the log that the model was trained on, only the queries, or the sessions, that training held out are used. If
    training validated on labels, nothing was held out: all are used, and `trained_on_these_queries` is set. Training
    sessions within another log are recognised by their time, if both logs have timestamps; otherwise remove them first.

    Args:
        policy: The model: a policy, or a fitted `Ranker`.
        log: Raw or counted sessions; or an aggregated log, to which position-based users only can be fitted, or one
            that counts documents, to which PBM and UBM can.
        k: Length of the lists; None = as in the log.
        provenance: Provenance of the model; None = as it was trained or loaded with. If it names no log, `log` is new
            to the model.
        stages: Receives the progress.
        against: Another model, whose top k is compared with instead of the logged lists.
        users: The users of this log, if they are fitted already, to evaluate several models; None = fit them.
        discount: What a click or a reward at each position counts: `dcg` = 1 / log2(1 + position), or k weights; None
            = 1.
    """
    require_type("log", log, ClickLog, OF_LOGS)
    policy = policy_of("policy", policy)
    known = policy.provenance if provenance is None else provenance
    other = None if against is None else policy_of("against", against)
    new, on = _new_to(policy, log, known)
    return evaluate_off_policy(policy, new, on, k, stages, other, users if new is log else None, discount)


def evaluate_off_policy(
    policy: RankingPolicy,
    log: ClickLog,
    on: EvaluatedQueries = ALL_QUERIES,
    k: int | None = None,
    stages: Stages = no_stages,
    against: RankingPolicy | None = None,
    users: UsersOfLog | None = None,
    discount: Discount = None,
) -> OffPolicyEvaluation:
    """Evaluate a model on given queries of a log; see `assess`."""
    check_propensities(log)
    k = _length(log, k)
    weights = None if discount is None else discount_weights(discount, k)
    if users is None:
        users = UsersOfLog.fit(log, on.queries, on.examination, stages)
    log = users.log
    queries = np.unique(log.query).astype(np.int64)
    if on.queries is not None:
        queries = queries[np.isin(queries, on.queries)]
    if not len(queries):
        raise InputError("queries: expected at least one query of the log to evaluate on, found none")

    def ranked_by(ranker: RankingPolicy) -> RankedQueries:
        return RankedQueries.of(ranker, log.candidates, queries, k, stages("ranking", len(queries)))

    ranked = ranked_by(policy)
    found = gain_on_log(GainOnLog(ranked, users, queries, k, against, weights), stages)
    shares = shown_shares(log if on.queries is None else log.select(np.flatnonzero(np.isin(log.query, queries))))
    never_shown, overlap = overlap_with_log(ranked, log.candidates, shares)
    member, units = logging_policy_member(policy), users.counts.units
    return OffPolicyEvaluation(
        queries=len(queries),
        k=k,
        trained_on_these_queries=on.trained_on,
        never_shown=never_shown,
        overlap=overlap,
        logging_policy_share=logging_policy_share(policy, log.candidates.select(queries[:SHARE_QUERIES])),
        logging_policy_overlap=None
        if member is None
        else overlap_with_log(ranked_by(member), log.candidates, shares)[1],
        against="production" if against is None else "the other model",
        held_out=on.held_out,
        outcome=log.outcome,
        session_groups=units.groups if units.of_sessions else 0,
        sessions_during_training=on.during_training,
        position_weights=() if weights is None else tuple(weights.tolist()),
        **found,
    )


def _length(log: ClickLog, k: int | None) -> int:
    """The length of the lists to compare: at most that of the longest one of the log."""
    if k is not None:
        check_arguments(k=(k, Range(1)))
    if not log.where.any():
        raise InputError("expected a log that shows documents, found none in any session")
    longest = page_width(log) if log.of_documents else int(np.flatnonzero(log.where.any(axis=0)).max()) + 1
    return longest if k is None else min(k, longest)


def _new_to(policy: RankingPolicy, log: ClickLog, provenance: Mapping[str, Any]) -> tuple[ClickLog, EvaluatedQueries]:
    """What training held out if this is the model's training log, otherwise all of it."""
    trained_on = provenance.get("log", {})
    if trained_on.get("clicks_sha256") != digest_of_clicks(log):
        during = sessions_between(log, str(trained_on.get("first", "")), str(trained_on.get("last", "")))
        return log, EvaluatedQueries(during_training=during)
    examination = None
    if isinstance(policy, EnsemblePolicy) and policy.examination is not None and not log.aggregated:
        examination = ExaminationModel(policy.examination, by_context=policy.by_context)
    settings = provenance.get("settings") or {}
    validated_by, training = settings.get("validated_by", {}), settings.get("training", {})
    share, seed = training.get("held_out"), training.get("seed")
    if share is None or seed is None:  # not known: a model that another program wrote
        return log, EvaluatedQueries(trained_on=True, examination=examination)
    # A model that it started from may have been trained on what is held out now.
    seen = bool(provenance.get("warm_start", {}).get("overlaps", False))
    if "held_out_queries" in validated_by:
        queries = held_out_queries(log, share, seed)
        return log, EvaluatedQueries(queries, seen, held_out=True, examination=examination)
    if "held_out_sessions" in validated_by and log.of_sessions:
        rows = held_out_sessions(log, share, seed)
        return log.select(rows), EvaluatedQueries(trained_on=seen, held_out=True, examination=examination)
    return log, EvaluatedQueries(trained_on=True, examination=examination)
