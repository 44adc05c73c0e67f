"""Learners maximise the reward, not clicks: a document that is clicked most and never bought ranks below."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cuolr.errors import InputError
from cuolr.examination.propensities import Estimate, Propensities
from cuolr.learners.rankers.lambdamart import LEVELS, graded
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.reward_scale import information, on_click_scale
from cuolr.training.base_learner import LEARNERS
from cuolr.training.presets.configure import configure
from cuolr.types import Candidates
from tests.training.tasks import fit_log

K = 3
EXAMINATION = np.array([1.0, 0.6, 0.3])
# By kind of document: clicked often and never bought, clicked at times and then bought, neither.
ATTRACTIVENESS = np.array([0.8, 0.3, 0.05])
BOUGHT = np.array([0.0, 0.5, 0.0])
QUERIES = 30


def shop(sessions: int = 6_000, seed: int = 0) -> ClickLog:
    """Lists in random order of three documents each, whose kind is their feature; a purchase is worth 10."""
    rng = np.random.default_rng(seed)
    features = np.tile(np.eye(3, dtype=np.float32), (QUERIES, 1))
    candidates = Candidates(features, np.arange(0, 3 * QUERIES + 1, 3), np.array([f"q{i}" for i in range(QUERIES)]))
    query = rng.integers(0, QUERIES, sessions).astype(np.int32)
    ranking = rng.permuted(np.tile(np.arange(K, dtype=np.int16), (sessions, 1)), axis=1)
    clicks = rng.random((sessions, K)) < EXAMINATION * ATTRACTIVENESS[ranking]
    bought = clicks & (rng.random((sessions, K)) < BOUGHT[ranking])
    return ClickLog(
        candidates,
        query,
        ranking,
        clicks.astype(np.uint8),
        np.ones(sessions, np.int64),
        reward=10 * bought.astype("f4"),
    )


SHOP = shop()
STEPS = {"lightgbm": 30, "xgboost": 30, "factored": 30}
RATES = ("learner.actor_learning_rate", "learner.critic_learning_rate", "learner.learning_rate")


def first_kinds(name: str, log: ClickLog) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """[queries] the kind of document that a learner places first."""
    if name == "xgboost":
        pytest.importorskip("xgboost")
    fields = LEARNERS.get(name).Config.__dataclass_fields__
    settings: dict[str, Any] = {rate: 3e-3 for rate in RATES if rate.partition(".")[2] in fields}
    settings = {**settings, **({"learner.learning_rate": 0.1} if name in ("lightgbm", "xgboost") else {})}
    if name == "factored":
        settings = {}
    for key, value in {"steps": STEPS.get(name, 300), "batch_size": 32, "seed": 1, "patience": 0}.items():
        settings[f"training.{key}"] = value
    settings |= {"learner.hidden": [16, 16]} if "hidden" in fields else {}
    settings |= {"learner.encoder": "position"} if "encoder" in fields else {}
    propensities = Propensities(Estimate(tuple(EXAMINATION.tolist())), {"given": Estimate((1.0,) * K)})
    given = propensities if LEARNERS.get(name).takes_propensities else None
    result = fit_log(log, configure(name, settings=settings), propensities=given)
    assert result.best is not None
    return result.best.policy.rank(log.candidates, 1)[:, 0]


@pytest.mark.parametrize(
    "name",
    [
        # One learner of a kind in `make check`.
        pytest.param(name, marks=[] if name in ("cql", "factored", "ipw", "lightgbm") else [pytest.mark.thorough])
        for name in LEARNERS.names()
        if name != "bc"
    ],
)
def test_what_is_bought_ranks_above_what_is_clicked(name: str) -> None:
    assert (first_kinds(name, SHOP) == 1).all()
    assert (first_kinds(name, replace(SHOP, reward=None)) == 0).all()


def test_rewards_are_in_units_of_the_mean_reward_of_a_click() -> None:
    log = replace(SHOP, reward=np.where(SHOP.clicks > 0, 1 + SHOP.ranking, 0).astype(np.float32))
    scaled, unit = on_click_scale(log, np.array([0, 1]))
    assert log.reward is not None
    assert scaled.reward is not None
    kept = log.query > 1
    assert unit == pytest.approx(log.reward[kept].sum() / log.clicks[kept].sum())
    assert scaled.reward[kept].sum() == pytest.approx(log.clicks[kept].sum(), rel=1e-5)
    assert on_click_scale(replace(log, reward=None), np.empty(0, np.int64))[1] == 1.0


def test_rewards_that_are_negative_or_without_a_click_are_refused() -> None:
    for reward in (-SHOP.clicks.astype(np.float32), 1 + SHOP.clicks.astype(np.float32)):
        with pytest.raises(InputError, match="expected rewards from 0 up, and above 0 only where there is a click"):
            on_click_scale(replace(SHOP, reward=reward), np.empty(0, np.int64))


def test_information_is_the_share_of_clicks_that_are_rewarded_alike() -> None:
    assert SHOP.reward is not None
    bought = (SHOP.reward > 0).sum() / SHOP.clicks.sum()
    assert information(SHOP) == pytest.approx(bought)  # (Σ r)² / (Σ c · Σ r²) = (10 n)² / (Σ c · 100 n)
    assert information(replace(SHOP, reward=7 * SHOP.clicks.astype("f4"))) == 1.0
    assert information(replace(SHOP, reward=None)) == 1.0
    assert information(replace(SHOP, reward=np.zeros_like(SHOP.reward))) == 1.0


def test_many_different_rewards_become_grades_of_equal_shares() -> None:
    rewards = np.random.default_rng(0).exponential(size=3_000).astype(np.float32) * (np.arange(3_000) % 3 > 0)
    grades, gain = graded(rewards)
    assert gain is not None
    assert (grades[rewards == 0] == 0).all()
    assert len(gain) == LEVELS + 1 == grades.max() + 1
    assert np.bincount(grades[grades > 0])[1:].std() < 5
    for grade in range(LEVELS + 1):
        assert gain[grade] == pytest.approx(float(rewards[grades == grade].mean()), rel=1e-5)
    assert list(gain) == sorted(gain)
