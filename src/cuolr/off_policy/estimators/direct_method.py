"""The direct method: clicks on a policy's own lists by users that were fitted to the log. It needs no propensities."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from cuolr.config import Range, check_ranges
from cuolr.data.normalise import Normaliser
from cuolr.examination.from_clicks import ExaminationModel
from cuolr.logs.counts import ClickCounts
from cuolr.logs.scaled_documents import ScaledDocuments
from cuolr.off_policy.estimators.forward_clicks import forward_clicks
from cuolr.policies.logging_policy_model import LoggingPolicyModel
from cuolr.random import FIXED_SEED
from cuolr.types import Bools, Doubles, IntegerArray, Ints

# Expected examinations from which the click rate of a document counts as its attractiveness, for the best case.
ENOUGH_EXAMINATIONS = 10.0


@dataclass(frozen=True)
class DirectMethod:
    """How users are fitted.

    Attributes:
        prior_strength: Strength of the prior on attractiveness, in pseudo-examinations. Little: the gain is a sum over
            documents, in which noise averages out and shrinkage to the mean does not.
        folds: Number of folds of queries; the examination of a query's users is estimated from the other folds.
    """

    prior_strength: Annotated[float, Range(above=0)] = 0.1
    folds: Annotated[int, Range(2)] = 2

    def __post_init__(self) -> None:
        check_ranges(self)


@dataclass(frozen=True)
class FittedUsers:
    """Users of the user browsing model, fitted to a log.

    P(C_k = 1 | last click above at j) = χ(k, j) · α(d_k). α̂ = (clicks + s · prior) / (expected examinations + s), the
    prior being the mean of the query, which is also α̂ of documents that were never shown.

    Attributes:
        tables: [folds, levels of context, K, K + 1] χ, cross-fitted over queries.
        fold: [n_queries] the fold of each query: its users have the table that was estimated without it.
        attractiveness: [n_documents] α̂.
        worth: [n_documents] mean reward of a click on the document; 1 if the click is the reward. Shrunk to the mean of
            the log by one pseudo-click.
        shown: [n_documents] whether the log shows a document.
        highest: The highest α̂ of a document with enough examinations.
    """

    tables: Doubles
    fold: Ints
    attractiveness: Doubles
    worth: Doubles
    shown: Bools
    highest: float

    @classmethod
    def fit(cls, counts: ClickCounts, method: DirectMethod) -> "FittedUsers":
        """Fit the users of a log; with a single query, its own clicks estimate its examination."""
        lists = counts.lists
        queries = np.unique(lists.query)
        fold = np.zeros(lists.candidates.n_queries, np.int64)
        shuffled = np.random.default_rng(FIXED_SEED).permutation(queries)
        fold[shuffled] = np.arange(len(shuffled)) % method.folds
        models = _examination(counts, fold[lists.query], min(method.folds, len(queries)))
        exposure = np.zeros(lists.where.shape)
        for number, model in enumerate(models):
            rows = fold[lists.query] == number
            exposure[rows] = model.expected_examinations(counts)[rows]
        examinations = counts.by_document(exposure)
        clicks = counts.by_document(counts.by_position(counts.clicks))
        query, n_queries = lists.candidates.query_of_document, lists.candidates.n_queries
        of_query = [np.bincount(query, weights=values, minlength=n_queries) for values in (clicks, examinations)]
        prior = np.minimum(of_query[0] / np.maximum(of_query[1], 1e-9), 1.0)[query]
        strength = method.prior_strength
        attractiveness = np.minimum((clicks + strength * prior) / (examinations + strength), 1.0)
        enough = attractiveness[examinations >= ENOUGH_EXAMINATIONS]
        return cls(
            tables=np.stack([_tables(model, counts) for model in models]),
            fold=fold,
            attractiveness=attractiveness,
            worth=_worth(counts, clicks),
            shown=counts.by_document(lists.where.astype(np.float64)) > 0,
            highest=float((enough if len(enough) else attractiveness).max()),
        )

    def rewards(
        self, users: tuple[IntegerArray, Ints], documents: Ints, where: Bools, never_shown: float | None = None
    ) -> Doubles:
        """[L, K] the expected rewards of lists: P(C_k = 1), times the worth of a click on d_k.

        Args:
            users: [L] each: the query, and the level of context.
            documents: [L, K] rows of the candidates.
            where: [L, K] true = a document is shown.
            never_shown: Attractiveness of documents that the log never shows; None = the prior.
        """
        alpha = self.attractiveness
        if never_shown is not None:
            alpha = np.where(self.shown, alpha, never_shown)
        query, level = users
        clicks = np.zeros(documents.shape)
        for fold, level_of_table in np.ndindex(*self.tables.shape[:2]):
            rows = np.flatnonzero((self.fold[query] == fold) & (level == level_of_table))
            table = self.tables[fold, level_of_table]
            clicks[rows] = forward_clicks(alpha[documents[rows]], where[rows], table)
        return clicks * self.worth[documents]


def _tables(model: ExaminationModel, counts: ClickCounts) -> Doubles:
    """[levels of context, K, K + 1] χ."""
    if model.by_context is None:
        return np.repeat(model.table[None], len(counts.levels), axis=0)
    return model.by_context.relative(counts.levels, model.table)


def _worth(counts: ClickCounts, clicks: Doubles) -> Doubles:
    """[n_documents] the mean reward of a click."""
    if counts.reward is None:
        return np.ones(len(clicks))
    rewards = counts.by_document(counts.by_position(counts.reward))
    mean = rewards.sum() / max(clicks.sum(), 1.0)
    worth: Doubles = (rewards + mean) / (clicks + 1)
    return worth


def _examination(counts: ClickCounts, fold: Ints, folds: int) -> list[ExaminationModel]:
    """An examination model per fold, estimated from the lists of the others."""
    lists = counts.lists
    normaliser = Normaliser.fit("log-min-max", lists.candidates)
    shown = ScaledDocuments.of(lists, normaliser)
    scores = LoggingPolicyModel.fit(lists, normaliser, seed=FIXED_SEED, folds=2).scores(shown.features)[shown.documents]
    if folds == 1:
        return [ExaminationModel.from_counts(counts, scores)]
    return [ExaminationModel.from_counts(counts, scores, np.flatnonzero(fold != number)) for number in range(folds)]
