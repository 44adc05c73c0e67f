"""Distils a model into a student, and measures on other queries how well that went."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuolr.distillation.student import StudentConfig, StudentKind, fit_student
from cuolr.errors import InputError
from cuolr.policies.policy import RankingInParts, RankingPolicy, ScaledScoringPolicy, ScoringPolicy
from cuolr.progress import Progress, Stages, no_progress, no_stages
from cuolr.types import Candidates, Doubles, Ints

# The documents of a list that are compared.
TOP = 10
# Positions of a list of a teacher without scores that are told apart; the documents below count as equal.
LIST_LENGTH = 30


@dataclass(frozen=True)
class Distilled:
    """A student, and how well it agrees with its teacher.

    Attributes:
        student: Ranks as the teacher does, faster.
        kind: What it is.
        agreement: Share of the teacher's top 10 that is in the student's, on queries that it did not learn from.
        queries: Number of queries that it learned from.
        held_out: Number of queries that the agreement was measured on.
        seconds: Processor time that it took.
    """

    student: ScaledScoringPolicy
    kind: StudentKind
    agreement: float
    queries: int
    held_out: int
    seconds: float

    def described(self) -> dict[str, Any]:
        """What it is and how well it agrees, as JSON values; the same whenever it is made again."""
        return {
            "kind": self.kind,
            f"agreement_of_top_{TOP}": self.agreement,
            "queries": self.queries,
            "held_out_queries": self.held_out,
        }

    def provenance(self, of_teacher: Mapping[str, Any]) -> dict[str, Any]:
        """That of the teacher, so that it is known which log the student has learned from, and what it is."""
        return {**of_teacher, "student": self.described()}


def distil(
    teacher: RankingPolicy,
    candidates: Candidates,
    kind: StudentKind = "trees",
    config: StudentConfig = StudentConfig(),
    stages: Stages = no_stages,
) -> Distilled:
    """Train one point-wise ranker that ranks candidates as the teacher does. Clicks are not used.

    Args:
        teacher: The model.
        candidates: The queries to learn from, such as those of its training log; at least two with two documents.
        kind: What the student is.
        config: Settings of the student.
        stages: Receives the progress.
    """
    start = time.process_time()
    learned_from, held_out = _split(candidates, config)
    lists = candidates.select(learned_from)
    ratings = teacher_scores(teacher, lists, stages("rating documents", lists.n_queries))
    steps = config.trees if kind == "trees" else config.steps
    student = fit_student(kind, teacher, lists, ratings, config, stages("training the student", steps))
    agreement = agreement_of_top(teacher, student, candidates.select(held_out))
    seconds = time.process_time() - start
    return Distilled(student, kind, agreement, len(learned_from), len(held_out), seconds)


def _split(candidates: Candidates, config: StudentConfig) -> tuple[Ints, Ints]:
    """The queries to learn from and those to hold out, of a sample with at most so many documents."""
    queries = np.flatnonzero(candidates.sizes > 1)
    if len(queries) < 2:
        raise InputError(f"expected at least 2 queries with 2 documents or more, found {len(queries)}")
    order = np.random.default_rng(config.seed).permutation(queries)
    within = int((np.cumsum(candidates.sizes[order]) <= config.max_documents).sum())
    order = order[: max(within, 2)]
    n_held_out = min(max(1, round(config.held_out * len(order))), len(order) - 1)
    return np.sort(order[n_held_out:]), np.sort(order[:n_held_out])


def agreement_of_top(one: RankingPolicy, other: RankingPolicy, candidates: Candidates, k: int = TOP) -> float:
    """The share of one model's top k that is in the top k of the other, in any order, on average over queries.

    Args:
        one: A model.
        other: Another one.
        candidates: The queries; those without documents do not count.
        k: Length of the lists.
    """
    asked = np.flatnonzero(candidates.sizes > 0)
    candidates = candidates.select(asked)
    lists = [RankingInParts(policy, no_progress).rank(candidates, k) for policy in (one, other)]
    return float(np.mean(shared_documents(*lists) / np.minimum(candidates.sizes, k)))


def shared_documents(one: Ints, other: Ints) -> Ints:
    """[B] the number of documents that both lists [B, k] have; −1 stands for none.

    >>> shared_documents(np.array([[3, 1, -1]]), np.array([[1, 0, -1]])).tolist()
    [1]
    """
    both = (one[:, :, None] == other[:, None, :]) & (one >= 0)[:, :, None]
    counts: Ints = both.sum(axis=(1, 2))
    return counts


def teacher_scores(teacher: RankingPolicy, candidates: Candidates, progress: Progress = no_progress) -> Doubles:
    """[n_documents] the ratings, centred within each query and divided by their standard deviation over all queries.

    A teacher that scores documents is taken at its scores. Of one that gives lists only, the document at position r
    counts −log(1 + r), r from 0, and all documents below `LIST_LENGTH` as the one at that position.

    Args:
        teacher: The model to reproduce.
        candidates: At least one document.
        progress: Called with the number of queries that were rated since the last call.
    """
    if isinstance(teacher, ScoringPolicy):
        scores = teacher.score(candidates).astype(np.float64)
        progress(candidates.n_queries)
    else:
        scores = _scores_of_lists(teacher, candidates, progress)
    query = np.repeat(np.arange(candidates.n_queries), candidates.sizes)
    sums = np.bincount(query, weights=scores, minlength=candidates.n_queries)
    centred: Doubles = scores - (sums / np.maximum(candidates.sizes, 1))[query]
    spread = float(centred.std())
    return centred / spread if spread > 0 else centred


def _scores_of_lists(teacher: RankingPolicy, candidates: Candidates, progress: Progress) -> Doubles:
    ranking = RankingInParts(teacher, progress).rank(candidates, LIST_LENGTH)
    scores = np.full(candidates.n_documents, -np.log1p(LIST_LENGTH))
    placed = ranking >= 0
    documents = (candidates.offsets[:-1, None] + ranking)[placed]
    scores[documents] = -np.log1p(np.broadcast_to(np.arange(LIST_LENGTH), ranking.shape)[placed])
    return scores
