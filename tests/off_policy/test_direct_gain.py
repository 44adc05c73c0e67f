"""The direct method on simulated logs, whose true gain is known."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from cuolr.clicks.click_model import click_model
from cuolr.clicks.simulate import simulate
from cuolr.errors import InputError
from cuolr.evaluation.evaluate import evaluate
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.counts import ClickCounts
from cuolr.off_policy.direct_gain import direct_gain
from cuolr.off_policy.estimate_gain import Estimand, estimate_gain
from cuolr.off_policy.estimators.direct_method import DirectMethod, FittedUsers
from cuolr.policies.plackett_luce import StochasticLogger
from tests.off_policy.policies import BETTER, LOGGER, TRAIN

DRAWN = StochasticLogger(LOGGER, float(LOGGER.score(TRAIN.candidates).std()))
K = 4


@cache
def log_by(logger: str, model: str) -> ClickLog:
    return simulate(TRAIN, DRAWN if logger == "drawn" else LOGGER, click_model(model), 60_000, k=K, seed=1)


def true_gain(log: ClickLog, model: str) -> float:
    measure = f"clicks:{model}@{K}"
    per_query = evaluate(BETTER, TRAIN, [measure]).per_query[measure]
    return float(((per_query * np.bincount(log.query)).sum() - log.clicks.sum()) / len(log))


@pytest.mark.parametrize("model", ["pbm", "ubm", "cascade"])
def test_the_interval_has_the_true_gain_for_users_of_the_browsing_model(model: str) -> None:
    log = log_by("drawn", model)
    found = direct_gain(BETTER, log)
    assert found.interval[0] < true_gain(log, model) < found.interval[1]
    assert found.fitted_production == pytest.approx(found.production, rel=0.02)
    assert np.ptp(found.interval) < np.ptp(estimate_gain(BETTER, log, "list-ips").interval)
    assert found.doubts == []


def test_the_bounds_have_the_true_gain_if_documents_were_never_shown() -> None:
    log = log_by("fixed", "ubm")
    found = direct_gain(BETTER, log)
    assert found.never_shown > 0.1
    assert found.worst_case < found.gain < found.best_case
    assert found.bounds[0] < true_gain(log, "ubm") < found.bounds[1]
    assert found.doubts == [f"{found.never_shown:.1%} of the policy's documents were never shown for their query"]


def test_production_gains_nothing() -> None:
    found = direct_gain(LOGGER, log_by("fixed", "pbm"))
    assert (found.gain, *found.interval, *found.bounds) == pytest.approx((0, 0, 0, 0, 0), abs=1e-12)
    drawn = direct_gain(DRAWN, log_by("drawn", "pbm"))
    assert drawn.interval[0] < 0 < drawn.interval[1]


def test_few_queries_have_an_interval_over_groups_of_sessions() -> None:
    log = simulate(TRAIN.select(np.arange(2)), DRAWN, click_model("pbm"), 3_000, k=3, seed=1)
    found = direct_gain(BETTER, log)
    assert found.units == 60  # groups of both queries
    assert np.isfinite(found.interval).all()


def test_positions_have_weights_and_lists_a_length() -> None:
    log = log_by("drawn", "pbm")
    first = direct_gain(BETTER, log, Estimand(position_weights=(1.0, 0.0, 0.0, 0.0)))
    top = direct_gain(BETTER, log, Estimand(k=1))
    assert first.gain == pytest.approx(top.gain)
    assert first.production == pytest.approx(log.clicks[:, 0].mean())


def test_a_gap_on_the_page_is_a_gap_for_the_policy() -> None:
    log = log_by("drawn", "pbm")
    pages = np.broadcast_to(np.array([0, 1, 3, 4], np.int32), log.ranking.shape)
    found = direct_gain(LOGGER, replace(log, page_position=np.where(log.where, pages, -1)))
    assert found.gain == pytest.approx(direct_gain(LOGGER, log).gain, abs=0.01)


def test_attractiveness_is_shrunk_to_the_mean_of_the_query() -> None:
    counts = ClickCounts.of(log_by("drawn", "pbm"))
    weak, strong = (FittedUsers.fit(counts, DirectMethod(prior_strength=s)).attractiveness for s in (1e-6, 1e6))
    query = counts.lists.candidates.query_of_document
    spread = [np.ptp(alpha[query == 0]) for alpha in (weak, strong)]
    assert spread[1] < 1e-3 < spread[0]


def test_examination_of_a_query_is_estimated_without_its_clicks() -> None:
    log = log_by("drawn", "pbm")
    users = FittedUsers.fit(ClickCounts.of(log), DirectMethod())
    others = log.clicks.copy()
    inside = users.fold[log.query] == 0
    others[inside] = np.random.default_rng(0).permutation(others[inside], axis=0)
    again = FittedUsers.fit(ClickCounts.of(replace(log, clicks=others)), DirectMethod())
    np.testing.assert_array_equal(users.tables[0], again.tables[0])
    assert (users.tables[1] != again.tables[1]).any()


@pytest.mark.parametrize(
    ("estimand", "message"),
    [(Estimand(reward="reward"), "expected a column of rewards"), (Estimand(k=9), "k: expected 1 to 4, found 9")],
)
def test_what_it_cannot_estimate_is_refused(estimand: Estimand, message: str) -> None:
    with pytest.raises(InputError, match=message):
        direct_gain(BETTER, log_by("drawn", "pbm"), estimand)


def test_rewards_are_those_of_clicks() -> None:
    log = log_by("drawn", "pbm")
    paid = replace(log, reward=3 * log.clicks.astype(np.float32))
    clicks, rewards = direct_gain(BETTER, log), direct_gain(BETTER, paid)
    assert rewards.gain == pytest.approx(3 * clicks.gain)
    assert rewards.production == pytest.approx(3 * clicks.production)
    assert direct_gain(BETTER, paid, Estimand(reward="clicks")) == clicks


def test_levels_of_context_have_their_own_users() -> None:
    """Some users click nothing below the first position."""
    log = log_by("drawn", "pbm")
    short = np.arange(len(log)) % 2 == 0
    clicks = log.clicks.copy()
    clicks[short, 1:] = 0
    device = np.where(short, "watch", "desktop")
    mixed = replace(log, clicks=clicks, examination=None, context={"device": device})
    users = FittedUsers.fit(ClickCounts.of(mixed), DirectMethod())
    assert users.tables.shape[1] == 2  # desktop, watch
    assert (users.tables[:, 1, 1:, 0] < 0.3 * users.tables[:, 0, 1:, 0]).all()
    found = direct_gain(BETTER, mixed)
    assert found.fitted_production == pytest.approx(found.production, rel=0.02)
