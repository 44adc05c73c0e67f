"""A package of somebody else: a learner, a click model, an encoder and a measure that `cuolr` finds by entry points."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from cuolr.clicks.click_model import CLICK_MODELS
from cuolr.clicks.pbm import PositionBasedModel
from cuolr.evaluation.measures import MEASURES, GradedLists, RankingMeasure
from cuolr.logs.importing.importer import IMPORTERS, LogImporter, SourceLog
from cuolr.networks.encoder import ENCODERS
from cuolr.networks.previous import PreviousEncoder
from cuolr.policies.linear_policy import LinearPolicy
from cuolr.progress import Progress, no_progress
from cuolr.training.base_learner import LEARNERS, FitTask, Learner
from cuolr.types import Doubles


@dataclass(frozen=True)
class PopularityConfig:
    """Settings of the popularity learner.

    Attributes:
        smoothing: Clicks that every document has before the first session.
    """

    smoothing: float = 1.0


@LEARNERS.register("popularity")
class Popularity(Learner):
    """Ranks by the features that documents with many clicks have: a linear regression of click counts."""

    Config = PopularityConfig
    role = "baseline"
    search_space = {"learner.smoothing": (0.5, 1.0)}  # noqa: RUF012

    def fit(self, task: FitTask) -> LinearPolicy:
        """No steps, so nothing for the loop to do."""
        log = task.log.select(np.flatnonzero(~np.isin(task.log.query, task.held_out)))
        clicks = np.full(log.candidates.n_documents, self.config.smoothing)
        weighted = log.clicks * log.count[:, None]
        np.add.at(clicks, log.documents[log.where], weighted[log.where])
        scaled = task.normaliser.apply(log.candidates).features
        weights, *_ = np.linalg.lstsq(scaled, np.log(clicks), rcond=None)
        return LinearPolicy(weights.astype(np.float32), task.normaliser)


@CLICK_MODELS.register("half-blind")
class HalfBlind(PositionBasedModel):
    """A position-based user under another name."""


@ENCODERS.register("foreign-mean")
class ForeignMean(PreviousEncoder):
    """The mean encoder under another name."""


@MEASURES.register("top-grade")
class TopGrade(RankingMeasure):
    """The grade of the first document."""

    def per_query(self, lists: GradedLists) -> Doubles:
        """[B]."""
        return lists.shown[:, 0].astype(np.float64)


@IMPORTERS.register("one-list")
class OneList(LogImporter):
    """A text file whose lines are the documents of one list; the last was clicked."""

    def read(self, files: Sequence[Path], progress: Progress = no_progress) -> SourceLog:
        """A table of one session."""
        documents = files[0].read_text().split()
        clicks = [int(document == documents[-1]) for document in documents]
        ids = {"query_id": ["q"] * len(documents), "session_id": ["s"] * len(documents), "doc_id": documents}
        return SourceLog(pl.DataFrame({**ids, "position": range(1, len(documents) + 1), "click": clicks}))


def no_learner() -> None:
    """A mistake that a package may make: an entry point that is no class."""


@LEARNERS.register("half-made")
class HalfMade(Learner):
    """Another one: a learner without settings."""

    def fit(self, task: FitTask) -> LinearPolicy:
        """Never called."""
        raise NotImplementedError
