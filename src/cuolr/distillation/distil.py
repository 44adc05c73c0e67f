"""Distils a model into a student, and measures on other queries how well that went."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuolr.distillation.agreement import TOP, agreement_of_top
from cuolr.distillation.student import StudentConfig, StudentKind, fit_student
from cuolr.distillation.teacher_scores import teacher_scores
from cuolr.errors import InputError
from cuolr.policies.policy import RankingPolicy, ScaledScoringPolicy
from cuolr.progress import Stages, unseen_stages
from cuolr.types import Candidates, Ints


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
    stages: Stages = unseen_stages,
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
