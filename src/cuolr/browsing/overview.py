"""The first view: the recommendation, queries by traffic times change, and the examination curve."""

from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np

from cuolr.browsing.browsed_model import BrowsedModel
from cuolr.browsing.query_changes import QueryChanges
from cuolr.errors import InputError
from cuolr.examination.curve_intervals import ExaminationCurves, examination_curves
from cuolr.examination.from_clicks import logging_scores_of
from cuolr.off_policy.recommendation import OffPolicyEvaluation
from cuolr.policies.policy import RankingInParts
from cuolr.progress import Stages, no_stages
from cuolr.types import Doubles, Ints


@dataclass(frozen=True)
class QueryRow:
    """A query in the table of queries.

    Attributes:
        query_id: As in the log.
        sessions: Number of sessions.
        change: Estimated change of all its sessions' clicks or reward; None = not estimated, as the next ones.
        low: Lower end of its 95 % interval.
        high: Upper end.
        baseline: Expected clicks or reward of the logged lists.
        moved: Number of documents of the model's list that production has elsewhere, or not at all.
    """

    query_id: str
    sessions: int
    change: float | None
    low: float | None
    high: float | None
    baseline: float | None
    moved: int


@dataclass(frozen=True)
class Overview:
    """The first view.

    Attributes:
        evaluation: Of the model on the log, with the recommendation.
        curves: Examination by position.
        changes: The estimated changes of all queries that may be shown; with errors, of those in the table.
        queries: The numbers of the queries in the table, worst estimated losses first.
        rows: The table.
        shown: Number of queries that may be shown.
        hidden: Number of queries with too few sessions.
    """

    evaluation: OffPolicyEvaluation
    curves: ExaminationCurves
    changes: QueryChanges
    queries: Ints
    rows: tuple[QueryRow, ...]
    shown: int
    hidden: int

    @classmethod
    def of(
        cls, browsed: BrowsedModel, evaluation: OffPolicyEvaluation, number: int, stages: Stages = no_stages
    ) -> Self:
        """The view with the worst estimated losses and the largest gains, by traffic.

        Args:
            browsed: The model and the log.
            evaluation: From `assess`.
            number: Number of queries in the table.
            stages: Receives the progress.
        """
        if not len(browsed.queries):
            raise InputError(f"no query of the log has {browsed.min_sessions:,} sessions; lower --min-sessions")
        stages("estimating changes", None)
        changes = browsed.changes(errors=False)
        queries = chosen_queries(changes, browsed.evidence.sessions, browsed.queries, number)
        changes = replace(changes, error=browsed.changes(queries).error)
        moved = _moved(browsed, queries, stages)
        rows = tuple(_row(browsed, changes, int(query), places) for query, places in zip(queries, moved, strict=True))
        counts = browsed.evidence.counts
        scores = browsed.logging_scores
        curves = examination_curves(counts, logging_scores_of(counts, stages) if scores is None else scores, stages)
        return cls(evaluation, curves, changes, queries, rows, len(browsed.queries), browsed.hidden)

    def as_dict(self) -> dict[str, Any]:
        """As JSON values, with positions from 1."""
        found = self.evaluation.as_dict()
        names = ["recommendation", "reason", "gain", "interval", "queries", "k", "identifiable", "outcome"]
        names += ["trained_on_these_queries", "held_out", "never_shown", "overlap"]
        return {
            "evaluation": {name: found[name] for name in names},
            "can_estimate": self.evaluation.can_estimate,
            "users": self.changes.users,
            "examination": {
                "from_documents": self.curves.from_documents,
                "curves": [
                    {"level": curve.level, "positions": [place and asdict(place) for place in curve.positions]}
                    for curve in self.curves.all
                ],
            },
            "rows": [asdict(row) for row in self.rows],
            "shown": self.shown,
            "hidden": self.hidden,
        }


def chosen_queries(changes: QueryChanges, sessions: Doubles, queries: Ints, number: int) -> Ints:
    """The worst losses for half of the places, the largest gains for the others, then queries of the most sessions.

    Losses are shown even if gains are larger: they are what a model is refused for. The worst come first.

    Args:
        changes: The estimates.
        sessions: [n_queries] of each query.
        queries: Those to choose from.
        number: How many.
    """
    change = changes.change[queries]
    ascending = queries[np.lexsort((queries, -sessions[queries], change))]  # those that are not known come last
    known = ascending[: int(np.isfinite(change).sum())]
    losses, others = known[changes.change[known] < 0], known[changes.change[known] >= 0]
    half = min(len(losses), max((number + 1) // 2, number - len(others)))
    gains = others[max(len(others) - (number - half), 0) :]
    unknown = ascending[len(known) :]
    return np.concatenate([losses[:half], gains, unknown])[:number]


def _moved(browsed: BrowsedModel, queries: Ints, stages: Stages) -> list[int]:
    """The number of documents of each model's list that are elsewhere in production's."""
    candidates, first = browsed.log.candidates, browsed.evidence.first
    ranker = RankingInParts(browsed.policy, stages("ranking", len(queries)))
    rankings = ranker.rank(candidates.select(queries), int(candidates.sizes[queries].max()))
    moved = []
    for query, ranking in zip(queries.tolist(), rankings, strict=True):
        production = browsed.evidence.production_list(query, browsed.k)
        rows = first[candidates.offsets[query] + ranking[ranking >= 0]].tolist()
        model = list(dict.fromkeys(rows))[: len(production)]
        moved.append(sum(here != there for here, there in zip(model, production, strict=False)))
    return moved


def _row(browsed: BrowsedModel, changes: QueryChanges, query: int, moved: int) -> QueryRow:
    known = bool(np.isfinite(changes.change[query]))
    low, high = changes.interval(query) if known else (None, None)
    return QueryRow(
        query_id=str(browsed.log.candidates.query_ids[query]),
        sessions=round(browsed.evidence.sessions[query]),
        change=float(changes.change[query]) if known else None,
        low=low,
        high=high,
        baseline=float(changes.baseline[query]) if known else None,
        moved=moved,
    )
