"""A model beside the log of the ranker that it would replace."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from cuolr.browsing.document_evidence import DocumentEvidence
from cuolr.browsing.document_titles import NO_TITLES, DocumentTitles
from cuolr.browsing.feature_contributions import FeatureExplainer
from cuolr.browsing.moves import Move, moves_between, reason_for
from cuolr.browsing.query_changes import QueryChanges
from cuolr.browsing.query_view import DocumentView, NamedContributions, QueryView
from cuolr.config import Range, check_arguments
from cuolr.data.feature_tables import logged_ids
from cuolr.errors import InputError
from cuolr.examination.from_clicks import ExaminationModel, logging_scores_of
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.counts import ClickCounts
from cuolr.off_policy.gain_on_log import GainOnLog
from cuolr.off_policy.users_of_log import UsersOfLog
from cuolr.policies.policy import RankingPolicy
from cuolr.progress import Stages, no_stages
from cuolr.registry import did_you_mean
from cuolr.types import Doubles, Ints, Strings

# Queries of fewer sessions are hidden: they may be those of one person.
MIN_SESSIONS = 10


@dataclass(frozen=True)
class BrowsedModel:
    """All that the views of single queries are made of.

    Attributes:
        policy: The model.
        users: The users that were fitted to the log.
        evidence: What the log says about each document.
        explainer: Explains the model's scores.
        titles: Of the documents.
        min_sessions: Queries of fewer sessions are hidden.
        logging_scores: [L, K] the scores of the logging policy, for the examination curve; None = not prepared.
    """

    policy: RankingPolicy
    users: UsersOfLog
    evidence: DocumentEvidence
    explainer: FeatureExplainer
    titles: DocumentTitles = NO_TITLES
    min_sessions: int = MIN_SESSIONS
    logging_scores: Doubles | None = None

    @classmethod
    def fit(
        cls,
        policy: RankingPolicy,
        log: ClickLog,
        min_sessions: int = MIN_SESSIONS,
        stages: Stages = no_stages,
        curve: bool = True,
    ) -> Self:
        """Fit users to a log and sum up its clicks.

        Args:
            policy: The model.
            log: Raw or aggregated.
            min_sessions: Queries of fewer sessions are hidden, for people's privacy; 1 = none.
            stages: Receives the progress.
            curve: Whether the examination curve will be shown, which takes longer to prepare.
        """
        check_arguments(min_sessions=(min_sessions, Range(1)))
        stages("explaining the model", None)
        # First of all: a log with other features is refused before any work.
        explainer = FeatureExplainer.of(policy, log.candidates)
        log = log.select(np.flatnonzero(log.where.any(axis=1)))
        counts, scores, start = ClickCounts.of(log, stages), None, None
        if curve and log.clicks.any():
            # The slowest part of both the curve and users whose examination the log does not identify: done once.
            scores = logging_scores_of(counts, stages)
            start = ExaminationModel.from_counts(counts, scores, stages=stages)
        users = UsersOfLog.fit(log, examination=start, stages=stages)
        # Without clicks there are no users to fit.
        examination = users.examination if users.fitted else ExaminationModel.full(counts.lists.k)
        evidence = DocumentEvidence.of(counts, examination)
        return cls(policy, users, evidence, explainer, min_sessions=min_sessions, logging_scores=scores)

    def with_titles(self, titles: DocumentTitles) -> Self:
        """The same with titles of documents."""
        return replace(self, titles=titles)

    @property
    def log(self) -> ClickLog:
        """The log."""
        return self.users.log

    @property
    def k(self) -> int:
        """Length of the lists."""
        return int(np.flatnonzero(self.log.where.any(axis=0)).max()) + 1

    @cached_property
    def document_ids(self) -> Strings:
        """[n_documents] as in the log."""
        return logged_ids(self.log.candidates)

    @cached_property
    def queries(self) -> Ints:
        """The queries with enough sessions to be shown, ascending."""
        return np.flatnonzero(self.evidence.sessions >= self.min_sessions)

    @property
    def hidden(self) -> int:
        """Number of queries of the log that are hidden."""
        return int(np.count_nonzero(self.evidence.sessions > 0)) - len(self.queries)

    def changes(self, queries: Ints | None = None, errors: bool = True) -> QueryChanges:
        """The estimated changes of queries.

        Args:
            queries: Which; None = all that are shown.
            errors: Whether with their errors, which take longer.
        """
        asked = GainOnLog(self.policy, self.users, self.queries if queries is None else queries, self.k)
        return QueryChanges.estimate(asked, self.evidence if errors else None)

    def find(self, query_id: str) -> int:
        """The number of a query; raises if the log does not have it, or if it is hidden."""
        ids = np.asarray(self.log.candidates.query_ids)
        found = np.flatnonzero(ids == query_id)
        shown = self.queries
        if not len(found) or not self.evidence.sessions[found[0]]:
            guess = did_you_mean(query_id, ids[shown].tolist()[:100_000])
            raise InputError(f"query '{query_id}': expected a query of the log, found none of this name{guess}")
        if found[0] not in shown:
            raise InputError(
                f"query '{query_id}': has fewer than {self.min_sessions} sessions, and is hidden for people's privacy; "
                "show it with --min-sessions 1"
            )
        return int(found[0])

    def view(self, query: int, changes: QueryChanges | None = None) -> QueryView:
        """What is shown for a query.

        Args:
            query: Its number.
            changes: Estimated changes that include this query, with its error; None = estimate it now.
        """
        changes = self.changes(np.array([query])) if changes is None else changes
        evidence, lists = self.evidence, self.evidence.counts.lists
        production = evidence.production_list(query, self.k)
        moves = moves_between(production, self._model_list(query, len(production)), evidence)
        named = self._contributions(query, moves)
        known = bool(np.isfinite(changes.change[query]))
        return QueryView(
            query_id=str(self.log.candidates.query_ids[query]),
            sessions=round(evidence.sessions[query]),
            lists=int(np.count_nonzero(lists.query == query)),
            outcome=self.log.outcome,
            change=float(changes.change[query]) if known else None,
            interval=changes.interval(query) if known else None,
            baseline=float(changes.baseline[query]) if known else None,
            features=() if named is None else named.names,
            documents=tuple(self._document(move, number, named) for number, move in enumerate(moves)),
        )

    def _model_list(self, query: int, length: int) -> list[int]:
        """The rows of the model's best documents; of variants of a document, the best."""
        candidates = self.log.candidates
        ranking = self.policy.rank(candidates.select(np.array([query])), int(candidates.sizes[query]))[0]
        rows = self.evidence.first[candidates.offsets[query] + ranking[ranking >= 0]]
        return list(dict.fromkeys(rows.tolist()))[:length]

    def _contributions(self, query: int, moves: list[Move]) -> NamedContributions | None:
        of_query = self.log.candidates.select(np.array([query]))
        indices = [move.document - int(self.log.candidates.offsets[query]) for move in moves]
        found = self.explainer.explain(of_query, indices) if indices else None
        if found is None:
            return None
        names = self.explainer.feature_names(of_query)
        return NamedContributions.of(found, names, self.explainer.values(of_query, indices))

    def _document(self, move: Move, number: int, named: NamedContributions | None) -> DocumentView:
        row, evidence = move.document, self.evidence
        query_id = str(self.log.candidates.query_ids[np.searchsorted(self.log.candidates.offsets, row, "right") - 1])
        document_id = str(self.document_ids[row])
        positions = evidence.positions_of(row)
        return DocumentView(
            document_id=document_id,
            title=self.titles.title(query_id, document_id),
            picture=self.titles.picture(query_id, document_id),
            production=move.before,
            model=move.after,
            direction=move.direction,
            justification=move.justification,
            reason=reason_for(move, self.log.outcome),
            passed=tuple(str(self.document_ids[other]) for other in move.passed),
            difference=move.difference,
            impressions=sum(times for _, times in positions),
            positions=tuple(positions),
            clicks=float(evidence.clicks[row]),
            reward=None if self.log.reward is None else float(evidence.rewards[row]),
            rate=move.rate,
            **({} if named is None else named.of_document(number)),
        )
