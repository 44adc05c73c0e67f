from dataclasses import replace

import numpy as np

from cuolr.data.normalise import Normaliser
from cuolr.learners.logged_order import fit_linear
from cuolr.policies.linear import LinearPolicy
from cuolr.types import ClickLog
from tests.small_log import small_candidates, small_log


def logged_by(weights: list[float], queries: int = 200, k: int = 4) -> ClickLog:
    """One session for each query, shown the order by a linear ranker."""
    candidates = small_candidates(queries, least=5, most=9)
    ranker = LinearPolicy(np.array(weights, np.float32), Normaliser.fit("min-max", candidates))
    ranking = ranker.rank(candidates, k)
    return ClickLog(
        candidates,
        np.arange(queries, dtype=np.int32),
        ranking,
        np.zeros(ranking.shape, np.uint8),
        np.ones(queries, np.int64),
    )


def test_it_ranks_as_the_logger_did() -> None:
    log = logged_by([1.0, -2.0, 0.5, 0.0])
    learned = fit_linear(log, Normaliser.fit("min-max", log.candidates), seed=1)
    assert learned is not None
    same = learned.rank(log.candidates, 4) == log.ranking
    assert same[:, 0].mean() > 0.9
    assert same.mean() > 0.8


def test_clicks_do_not_matter() -> None:
    log = logged_by([1.0, -2.0, 0.5, 0.0])
    normaliser = Normaliser.fit("min-max", log.candidates)
    clicked = replace(log, clicks=np.where(log.ranking == log.ranking.max(axis=1)[:, None], 1, 0).astype(np.uint8))
    first, second = fit_linear(log, normaliser, 1), fit_linear(clicked, normaliser, 1)
    assert first is not None
    assert second is not None
    np.testing.assert_array_equal(first.weights, second.weights)


def test_a_row_that_stands_for_many_sessions_counts_as_often() -> None:
    log = small_log(rows=30)
    aggregated = replace(log, clicks=log.clicks.astype(np.float64), aggregated=True)
    often = replace(aggregated, count=np.arange(1, 31))
    repeated = log.select(np.repeat(np.arange(30), np.arange(1, 31)))
    normaliser = Normaliser.fit("min-max", log.candidates)
    first, second = fit_linear(often, normaliser, 1), fit_linear(repeated, normaliser, 1)
    assert first is not None
    assert second is not None
    np.testing.assert_allclose(first.weights, second.weights, rtol=1e-6)


def test_lists_of_all_documents_of_one_document_say_nothing() -> None:
    candidates = small_candidates(5, least=1, most=1)
    log = ClickLog(
        candidates,
        np.arange(5, dtype=np.int32),
        np.zeros((5, 1), np.int16),
        np.zeros((5, 1), np.uint8),
        np.ones(5, np.int64),
    )
    assert fit_linear(log, Normaliser.fit("min-max", candidates), 1) is None
