"""How much a model's rankings and scores agree with the logging policy."""

import numpy as np

from cuolr.data.variants import first_variants
from cuolr.logs.clicklog import ClickLog
from cuolr.policies.ensemble_policy import EnsemblePolicy
from cuolr.policies.policy import RankingPolicy
from cuolr.policies.ranking_in_parts import RankingInParts
from cuolr.progress import Stages, unseen_stages
from cuolr.types import Candidates, Ints


def overlap_with_log(
    policy: RankingPolicy, lists: ClickLog, queries: Ints, k: int, stages: Stages = unseen_stages
) -> tuple[float, float]:
    """How much of a policy's top k the log shows.

    Args:
        policy: The policy to compare with the log.
        lists: The log, raw or aggregated.
        queries: The queries to rank, each with sessions in the log.
        k: Length of the rankings.
        stages: Receives the queries that were ranked so far.

    Returns:
        never_shown: Share of the ranked documents that the log never shows for their query.
        overlap: Share of their query's sessions that show a ranked document, averaged over ranked documents.
    """
    candidates = lists.candidates
    row, _ = np.nonzero(lists.where)
    documents = lists.documents[lists.where]
    # A variant counts as shown if its document was.
    first = first_variants(candidates)
    impressions = np.bincount(first[documents], weights=lists.count[row], minlength=candidates.n_documents)[first]
    sessions = np.bincount(lists.query, weights=lists.session_count, minlength=candidates.n_queries)
    ranking = RankingInParts(policy, stages("ranking", len(queries))).rank(candidates.select(queries), k)
    where = ranking >= 0
    shown = impressions[np.where(where, candidates.offsets[queries, None] + ranking, 0)]
    share = shown / sessions[queries, None]
    return float((share[where] == 0).mean()), float(share[where].mean())


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
    for i, (member, weight) in enumerate(zip(policy.members, policy.weights, strict=True)):
        scores[int(i in policy.logging_policy_members)] += weight * member.score(candidates)
    of_clicks, of_logging_policy = scores.std(axis=1)
    total = of_clicks + of_logging_policy
    return float(of_logging_policy / total) if total > 0 else None
