"""A real log in two parts: what methods learn from, and what judges them: lists in random order, or labels."""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from cuolr.data.normalise import Normaliser
from cuolr.errors import InputError, problems_in
from cuolr.examination.from_clicks import ExaminationModel
from cuolr.examination.propensities import Estimate, Propensities
from cuolr.examination.randomised import estimate_propensities, random_lists
from cuolr.experiments.human_labels import read_labels
from cuolr.files import content_hash
from cuolr.logs.clicklog import ClickLog, require_single_sessions
from cuolr.logs.counts import ClickCounts
from cuolr.logs.importing.seen_documents import has_features
from cuolr.logs.log_folder import load_click_log
from cuolr.logs.log_meta import fingerprint
from cuolr.logs.page_positions import at_page_positions
from cuolr.off_policy.random_lists import order_by_score
from cuolr.policies.logging_policy_model import LoggingPolicyModel
from cuolr.policies.policy import ScoringPolicy
from cuolr.progress import Stages, no_stages
from cuolr.types import Bools, Doubles, Ints, RankingDataset


@dataclass(frozen=True)
class RealData:
    """A log to learn from, and the judges.

    Attributes:
        name: As the report prints it.
        train: The lists that were not in random order; all lists if none were.
        judge: The lists in random order; None = none.
        labels: Labelled queries; None = none.
    """

    name: str
    train: ClickLog
    judge: ClickLog | None = None
    labels: RankingDataset | None = None

    @classmethod
    def read(cls, folder: Path, labels: Path | None = None, stages: Stages = no_stages) -> "RealData":
        """Read an imported log and, if given, its labels."""
        log = load_click_log(folder, stages=stages)
        graded = None if labels is None else read_labels(labels, log.candidates)
        with problems_in(folder):
            return split_log(log, folder.resolve().name, graded)

    @cached_property
    def digest(self) -> str:
        """A hash of everything in the data that affects results."""
        parts = [fingerprint(self.train)]
        if self.judge is not None:
            parts.append(fingerprint(self.judge))
        if self.labels is not None:
            parts.append(content_hash(self.labels.candidates.features, self.labels.relevance))
        return content_hash(parts)[:16]

    @property
    def can_train(self) -> bool:
        """Whether rankers can be trained: documents have features, and are shown with others."""
        return has_features(self.train.candidates) and bool(self.train.where[:, 1:].any())

    @cached_property
    def random_examination(self) -> Propensities:
        """Examination by position, from the lists in random order."""
        assert self.judge is not None
        judge = self.judge
        return estimate_propensities(random_lists(lambda: [judge]))

    @cached_property
    def counts(self) -> ClickCounts:
        """The counts of the training log."""
        return ClickCounts.of(self.train)

    @cached_property
    def examination(self) -> ExaminationModel:
        """Examination as estimated from the clicks of the training log."""
        return ExaminationModel.fit(self.counts)

    def propensities(self) -> Propensities:
        """Examination by position for methods that take it, estimated from the training log alone."""
        return Propensities(Estimate(tuple(_filled(by_position(self.examination, self.counts)).tolist())))

    def click_rates(self) -> Doubles:
        """[K] the click rate by position on the page in the training log, relative to position 1."""
        lists = at_page_positions(self.train)
        rate = lists.clicks.sum(axis=0) / np.maximum(lists.where.sum(axis=0), 1)
        relative: Doubles = rate / max(float(rate[0]), 1e-12)
        return relative

    def logging_order(self) -> Ints:
        """[M, K] the lists in random order, in the order of the logging policy.

        If the training log shows all documents of the list for the query, their mean positions there; otherwise a model
        of the logging policy.
        """
        assert self.judge is not None
        train, candidates = self.train, self.train.candidates
        position = np.nonzero(train.where)[1]
        documents = train.documents[train.where]
        shown = np.bincount(documents, minlength=candidates.n_documents)
        total = np.bincount(documents, weights=position.astype(np.float64), minlength=candidates.n_documents)
        mean = np.where(shown > 0, total / np.maximum(shown, 1), np.inf)
        of_lists = np.where(self.judge.where, -mean[self.judge.documents], 0.0)
        known: Bools = ~np.isinf(of_lists).max(axis=1, keepdims=True)
        scores = np.zeros(candidates.n_documents)
        if not known.all() and (policy := self.logging_policy()) is not None:
            scores = policy.score(candidates).astype(np.float64)
        return order_by_score(np.where(known, of_lists, scores[self.judge.documents]), self.judge)

    def logging_policy(self) -> ScoringPolicy | None:
        """A model of the logging policy; None if no document was shown above another."""
        normaliser = Normaliser.fit("log-min-max", self.train.candidates)
        model = LoggingPolicyModel.fit(self.counts.lists, normaliser, seed=0, folds=2)
        return model.rankers[0].policy() if model.rankers else None


def split_log(log: ClickLog, name: str, labels: RankingDataset | None = None) -> RealData:
    """Set the lists in random order apart.

    Args:
        log: The log.
        name: As the report prints it.
        labels: Labelled queries.
    """
    require_single_sessions(log, "judging by lists in random order")
    random = np.zeros(len(log), np.bool_) if log.randomised is None else log.randomised
    if random.all():
        raise InputError("all lists were in random order; expected others, too, to learn from")
    if not random.any() and labels is None:
        raise InputError(
            "expected lists that are marked as in random order (column `randomised`), or labels, to judge methods by; "
            "found neither"
        )
    # A learner must not know which lists are random, nor that there are others.
    train = replace(log.select(np.flatnonzero(~random)), randomised=None)
    judge = replace(log.select(np.flatnonzero(random)), randomised=None) if random.any() else None
    return RealData(name, train, judge, labels)


def by_position(examination: ExaminationModel, counts: ClickCounts) -> Doubles:
    """[K] the mean examination of each position of some lists, relative to position 1; NaN where none is known."""
    impressions = (counts.lists.where * counts.lists.count[:, None]).sum(axis=0)
    table = ExaminationModel(_resized(examination.table, counts.lists.k))
    exposure = table.expected_examinations(counts).sum(axis=0)
    mean = np.where(impressions > 0, exposure / np.maximum(impressions, 1), np.nan)
    relative: Doubles = mean / mean[0]
    return relative


def _resized(table: Doubles, k: int) -> Doubles:
    """[k, k + 1] the table of k positions; what is not known of the last positions is as at the last known one."""
    known = min(k, len(table))
    resized = np.full((k, k + 1), np.nan)
    resized[:known, : known + 1] = table[:known, : known + 1]
    resized[known:] = np.nanmin(table[known - 1])
    return resized


def _filled(values: Doubles) -> Doubles:
    """The values, with the last known one where none is known."""
    known = np.where(np.isnan(values) | (values <= 0), 0, np.arange(len(values)))
    return values[np.maximum.accumulate(known)]
