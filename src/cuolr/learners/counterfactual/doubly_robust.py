"""`doubly-robust`: inverse propensity weighting of what a regression of relevance does not explain."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from cuolr.config import Range
from cuolr.examination.regression_based_em import EmSettings, RelevanceRegression
from cuolr.learners.counterfactual.debiased import DebiasedConfig, ExposureLearner
from cuolr.learners.counterfactual.ipw import relative_examination
from cuolr.learners.counterfactual.pooled_clicks import PooledClicks, largest_reward
from cuolr.logs.columns import index_dtype
from cuolr.logs.page_positions import at_page_positions
from cuolr.logs.scaled_documents import scaled_features
from cuolr.training.base_learner import LEARNERS, FitTask, SearchSpace
from cuolr.training.batches import WeightedLists
from cuolr.types import Bools, Candidates, Doubles, Ints

# The least exposure is this divided by the square root of the number of sessions, unless it is set.
CLIPPING = 10.0


@dataclass(frozen=True)
class DoublyRobustConfig(DebiasedConfig):
    """Settings of the doubly robust estimator, in addition to those of `DebiasedConfig`.

    Attributes:
        regression_steps: Number of gradient steps of the regression.
        regression_learning_rate: Learning rate of the regression.
        min_exposure: Lower limit on the mean exposure of a document; none = 10 / √(number of sessions).
    """

    regression_steps: Annotated[int, Range(1, 1_000_000)] = 300
    regression_learning_rate: Annotated[float, Range(0, 1)] = 3e-3
    min_exposure: Annotated[float, Range(above=0, at_most=1)] | None = None


@LEARNERS.register("doubly-robust")
class DoublyRobust(ExposureLearner):
    """R̂_d + 1/N Σ_i (c_i(d) − θ_k(i)·R̂_d) / max(ρ_d, τ) of each candidate d of a query, shown or not.

    N is the number of sessions of the query, ρ_d = 1/N Σ_i θ_k(i) the mean exposure of d, and R̂ a regression from
    features. A document that is hardly exposed has the target of the regression, and so has one that was never shown.
    Oosterhuis 2023, "Doubly robust estimation for correcting position bias in click feedback for unbiased learning to
    rank", with τ = 10 / √(number of sessions).

    The regression minimises the paper's cross-entropy, −Σ_d 1/ρ_d Σ_i [c_i log R̂_d + (θ_k(i) − c_i) log(1 − R̂_d)], for
    documents that were shown. Pooled over sessions, the label of a document is its clicks / Σ θ.

    Deviation: labels are at most 1, a document is weighted by its impressions, and targets are from 0 to 1. The paper
    has known ρ; here it is that of the log. There is no trust bias (β = 0).
    """

    Config = DoublyRobustConfig
    config: DoublyRobustConfig
    takes_propensities = True
    search_space: ClassVar[SearchSpace] = {
        **ExposureLearner.search_space,
        "learner.regression_learning_rate": (1e-3, 3e-3),
    }

    def exposed_clicks(self, task: FitTask) -> PooledClicks:
        """The doubly robust click rate of each candidate of the queries in the log."""
        log, config = at_page_positions(task.log), self.config
        candidates, where = log.candidates, log.where
        count = np.broadcast_to(log.count[:, None], where.shape).astype(np.float64)
        examination = relative_examination(log, task.propensities, "doubly-robust")

        def by_document(values: Doubles) -> Doubles:
            sums = np.bincount(log.documents[where], weights=values[where], minlength=candidates.n_documents)
            return sums.astype(np.float64)

        clicks, examined, impressions = (by_document(v) for v in (log.rewards * count, examination * count, count))
        sessions = np.bincount(log.query, weights=log.count, minlength=candidates.n_queries).astype(np.float64)
        max_rate = largest_reward(log, task.held_out)
        label = np.divide(clicks, examined, out=np.zeros_like(clicks), where=examined > 0) / max_rate
        predicted = max_rate * self._predicted(task, sessions > 0, np.clip(label, 0.0, 1.0), impressions)
        of_document = np.maximum(sessions, 1)[candidates.query_of_document]
        min_exposure = config.min_exposure or min(CLIPPING / float(np.sqrt(log.sessions)), 1.0)
        rate = corrected_rates(predicted, clicks / of_document, examined / of_document, min_exposure)
        lists = all_candidates(candidates, np.flatnonzero(sessions > 0), sessions, rate)
        return PooledClicks.of(lists, max_rate)

    def _predicted(self, task: FitTask, with_sessions: Bools, label: Doubles, impressions: Doubles) -> Doubles:
        """[n_documents] R̂, fitted to the shown documents of training queries; 0 in queries without sessions."""
        query = task.log.candidates.query_of_document
        used = with_sessions[query]
        features = scaled_features(task.log.candidates, task.normaliser, used)
        config, seed = self.config, task.config.seed
        settings = EmSettings(1, config.regression_steps, config.regression_learning_rate, seed)
        regression = RelevanceRegression(features, settings)
        learned_from = used & (impressions > 0) & ~np.isin(query, task.held_out)
        place = np.cumsum(used) - 1
        if learned_from.any():
            regression.fit(place[learned_from], label[learned_from], impressions[learned_from])
        predicted = np.zeros(len(query))
        predicted[used] = regression.predict(place[used])
        return predicted


def corrected_rates(predicted: Doubles, clicks: Doubles, exposure: Doubles, min_exposure: float) -> Doubles:
    """R̂ + (clicks − exposure·R̂) / max(exposure, τ), clicks and exposure of a session of the query.

    >>> corrected_rates(np.array([0.2, 0.2, 0.2]), np.array([0.1, 0.1, 0.0]), np.array([0.5, 0.1, 0.0]), 0.4)
    array([0.2, 0.4, 0.2])

    Args:
        predicted: R̂ of each document.
        clicks: The mean clicks.
        exposure: The mean examination; 0 = never shown.
        min_exposure: τ.
    """
    rates: Doubles = predicted + (clicks - exposure * predicted) / np.maximum(exposure, min_exposure)
    return rates


def all_candidates(candidates: Candidates, queries: Ints, sessions: Doubles, target: Doubles) -> WeightedLists:
    """A list for each query with all its candidates.

    Args:
        candidates: The documents of each query.
        queries: The queries.
        sessions: [n_queries] the number of sessions of each query.
        target: [n_documents] the target of each document.
    """
    rows, where = candidates.padded_rows(queries)
    return WeightedLists(
        candidates=candidates,
        query=queries.astype(np.int32),
        ranking=np.where(where, np.arange(where.shape[1]), -1).astype(index_dtype(candidates)),
        targets=np.where(where, target[rows], 0.0),
        count=sessions[queries].astype(np.int64),
    )
