import dataclasses
from dataclasses import replace

import numpy as np
import pytest

from cuolr.clicks.base import click_model
from cuolr.clicks.simulate import simulate
from cuolr.data.aggregate import aggregate
from cuolr.data.normalise import Normaliser
from cuolr.data.synthetic import generate
from cuolr.errors import InputError
from cuolr.policies.base import RankingPolicy
from cuolr.policies.blend import BlendPolicy
from cuolr.policies.linear import LinearPolicy
from cuolr.policies.uniform import RandomPolicy
from cuolr.ranksvm import fit_ranksvm
from cuolr.readiness import Readiness, assess
from cuolr.types import ClickLog
from tests.small_log import small_log

READY = Readiness(100, 10, 0.1, 0.8, 0.05, (0.02, 0.08), None)
TRAIN = generate("tiny", 300, seed=3)
LOGGER, BETTER = fit_ranksvm(TRAIN, 0.01, 1), fit_ranksvm(TRAIN, 1.0, 1)


def log_of(logger: RankingPolicy, model: str = "pbm", sessions: int = 60_000) -> ClickLog:
    return simulate(TRAIN, logger, click_model(model), sessions, seed=1)


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({}, "ship"),
        ({"never_shown": 0.3}, "test"),
        ({"interval": (-0.01, 0.08)}, "keep"),
        ({"interval": (-0.01, 0.08), "never_shown": 0.3}, "keep"),
        ({"interval": (-np.inf, np.inf)}, "keep"),
    ],
)
def test_the_verdict_follows_from_gain_and_familiarity(change: dict[str, object], verdict: str) -> None:
    found = dataclasses.replace(READY, **change)  # type: ignore[arg-type]
    assert found.verdict == verdict
    assert ("never shows" in found.reason) == (verdict == "test")


def test_the_logger_itself_gains_nothing_and_shows_nothing_new() -> None:
    found = assess(LOGGER, log_of(LOGGER))
    assert found.never_shown == 0
    assert found.overlap == 1
    assert found.gain == pytest.approx(0, abs=1e-9)
    assert found.verdict == "keep"


@pytest.mark.parametrize("model", ["pbm", "cascade", "dcm"])
def test_a_better_ranker_gains_and_a_random_order_loses(model: str) -> None:
    log = log_of(LOGGER, model)
    better, worse = assess(BETTER, log), assess(RandomPolicy(1), log)
    assert better.gain > 0
    assert worse.interval[1] < 0


def test_a_weaker_ranker_does_not_seem_better_than_a_strong_logger() -> None:
    assert assess(LOGGER, log_of(BETTER)).verdict == "keep"


def test_familiarity_is_counted_document_by_document() -> None:
    log = small_log(rows=300)
    policy = LinearPolicy(np.array([1.0, 0, 0, 0], np.float32), Normaliser.fit("min-max", log.candidates))
    found = assess(policy, log, k=3)
    ranking = policy.rank(log.candidates, 3)
    shares = []
    for query in np.unique(log.query):
        lists = log.ranking[log.query == query]
        shares += [(lists == slot).any(axis=1).mean() for slot in ranking[query] if slot >= 0]
    assert found.never_shown == pytest.approx(np.mean([share == 0 for share in shares]))
    assert found.overlap == pytest.approx(np.mean(shares))


def test_just_some_queries_are_looked_at_if_asked_for() -> None:
    log = log_of(LOGGER)
    assert assess(BETTER, log, queries=np.array([3, 5, 8])).queries == 3
    with pytest.raises(InputError, match="at least one query of the log"):
        assess(BETTER, log, queries=np.array([], np.int64))


def test_an_aggregated_log_will_do() -> None:
    log = log_of(LOGGER)
    raw, aggregated = assess(BETTER, log), assess(BETTER, aggregate(log))
    assert aggregated.never_shown == raw.never_shown
    assert aggregated.gain == pytest.approx(raw.gain, abs=0.05)


def test_a_log_without_clicks_supports_nothing() -> None:
    log = log_of(LOGGER, sessions=3_000)
    found = assess(BETTER, replace(log, clicks=np.zeros_like(log.clicks)))
    assert found.verdict == "keep"


def test_it_is_said_how_much_of_a_score_is_the_logged_order() -> None:
    log = log_of(LOGGER, sessions=3_000)
    alone = BlendPolicy([LOGGER], [2.0])
    assert assess(alone, log).logged_order == pytest.approx(1.0)
    assert assess(LOGGER, log).logged_order is None
