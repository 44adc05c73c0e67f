"""The gain of whole policies on simulated logs, whose true value is known."""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest

from cuolr.clicks.click_model import click_model
from cuolr.clicks.simulate import simulate
from cuolr.errors import InputError
from cuolr.evaluation.evaluate import evaluate
from cuolr.logs.aggregate import aggregate
from cuolr.logs.clicklog import ClickLog
from cuolr.off_policy.estimate_gain import Estimand, estimate_gain, logged_lists
from cuolr.off_policy.estimators import cascade_dr
from cuolr.off_policy.estimators.cascade_dr import CascadeDoublyRobust
from cuolr.off_policy.estimators.off_policy_estimator import ESTIMATORS
from cuolr.policies.plackett_luce import StochasticLogger
from cuolr.policies.policy import RankingPolicy
from cuolr.policies.random_policy import RandomPolicy, UniformLogger
from cuolr.supervised.ranksvm import fit_ranksvm
from cuolr.types import Candidates
from tests.off_policy.policies import BETTER, LOGGER, TRAIN

DRAWN = StochasticLogger(LOGGER, float(LOGGER.score(TRAIN.candidates).std()))
SOFT = StochasticLogger(BETTER, float(BETTER.score(TRAIN.candidates).std()))
SMALL = TRAIN.select(np.arange(40))


@cache
def drawn_log(model: str = "pbm", sessions: int = 40_000) -> ClickLog:
    return simulate(TRAIN, DRAWN, click_model(model), sessions, k=3, seed=2)


@pytest.mark.parametrize("model", ["pbm", "cascade", "ubm"])
@pytest.mark.parametrize("name", ["list-ips", "snips", "reward-interaction-ips", "cascade-dr"])
def test_the_interval_has_the_true_gain_of_a_deterministic_policy(name: str, model: str) -> None:
    log = drawn_log(model)
    found = estimate_gain(BETTER, log, name)
    measure = f"clicks:{model}@3"
    per_query = evaluate(BETTER, TRAIN, [measure]).per_query[measure]
    truth = (per_query * np.bincount(log.query)).sum() / len(log) - log.clicks.sum() / len(log)
    low, high = found.interval
    assert low < truth < high
    assert high - low < 0.5


def test_a_reward_model_of_a_sample_of_the_lists_gives_no_bias(monkeypatch: pytest.MonkeyPatch) -> None:
    log = drawn_log("ubm")
    of_all = estimate_gain(BETTER, log, "cascade-dr")
    monkeypatch.setattr(cascade_dr, "MAX_FITTED_LISTS", 300)
    of_sample = estimate_gain(BETTER, log, "cascade-dr")
    assert of_sample.gain != of_all.gain
    per_query = evaluate(BETTER, TRAIN, ["clicks:ubm@3"]).per_query["clicks:ubm@3"]
    truth = (per_query * np.bincount(log.query)).sum() / len(log) - log.clicks.sum() / len(log)
    assert of_sample.interval[0] < truth < of_sample.interval[1]


def test_item_position_ips_has_the_true_gain_for_position_based_users() -> None:
    log = drawn_log()
    found = estimate_gain(BETTER, log, "item-position-ips", logging_policy=DRAWN)
    per_query = evaluate(BETTER, TRAIN, ["clicks:pbm@3"]).per_query["clicks:pbm@3"]
    truth = (per_query * np.bincount(log.query)).sum() / len(log) - log.clicks.sum() / len(log)
    assert found.interval[0] < truth < found.interval[1]
    assert np.ptp(found.interval) < np.ptp(estimate_gain(BETTER, log, "list-ips").interval)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ESTIMATORS.names())
def test_the_interval_has_the_true_gain_of_a_stochastic_policy(name: str) -> None:
    log = drawn_log()
    found = estimate_gain(SOFT, log, name, logging_policy=DRAWN)
    truth = simulate(TRAIN, SOFT, click_model("pbm"), 200_000, k=3, seed=5).clicks.sum(axis=1).mean() - found.production
    low, high = found.interval
    assert low - 0.01 < truth < high + 0.01
    assert found.effective_sample_size > 1000


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["list-ips", "snips", "item-position-ips", "reward-interaction-ips"])
def test_the_logging_policy_gains_nothing(name: str) -> None:
    log = drawn_log()
    found = estimate_gain(DRAWN, log, name, logging_policy=DRAWN)
    assert (found.gain, *found.interval) == pytest.approx((0, 0, 0), abs=1e-9)
    assert found.production == pytest.approx(log.clicks.sum() / len(log))


def test_an_aggregated_log_gives_the_same() -> None:
    log = drawn_log()
    for name in ("list-ips", "cascade-dr"):
        of_sessions, of_lists = (estimate_gain(SOFT, form, name) for form in (log, aggregate(log)))
        assert of_lists.gain == pytest.approx(of_sessions.gain)
        assert of_lists.interval == pytest.approx(of_sessions.interval)


def test_rewards_and_position_weights() -> None:
    log = drawn_log()
    doubled = replace(log, reward=2 * log.clicks.astype(np.float32))
    clicks = estimate_gain(SOFT, log)
    for same in (Estimand(reward="reward"), Estimand()):
        assert estimate_gain(SOFT, doubled, estimand=same).gain == pytest.approx(2 * clicks.gain)
    assert estimate_gain(SOFT, doubled, estimand=Estimand(reward="clicks")).gain == clicks.gain
    first = estimate_gain(SOFT, log, estimand=Estimand(position_weights=(1, 0, 0)), control_variate=False)
    top = estimate_gain(SOFT, log, estimand=Estimand(k=1), control_variate=False)
    assert first.gain == pytest.approx(top.gain)


def test_a_log_of_few_queries_has_an_interval_over_groups_of_sessions() -> None:
    log = simulate(TRAIN.select(np.arange(3)), DRAWN, click_model("pbm"), 3_000, k=3, seed=1)
    found = estimate_gain(SOFT, log)
    assert found.units == 30
    assert np.isfinite(found.interval).all()


def test_a_deterministic_log_bounds_the_gain_of_another_policy() -> None:
    log = simulate(TRAIN, LOGGER, click_model("pbm"), 5_000, k=3, seed=1)
    log = replace(log, logging_propensity=np.ones(log.ranking.shape, np.float32))
    found = estimate_gain(BETTER, log, "list-ips")
    assert found.unsupported > 0.3
    assert found.worst_case < 0 < found.best_case
    assert any("the log cannot say the reward of" in doubt for doubt in found.doubts)
    own = estimate_gain(LOGGER, log, "list-ips")
    assert (own.gain, *own.bounds, own.unsupported) == pytest.approx((0, 0, 0, 0), abs=1e-12)


def test_documents_that_were_never_shown_are_counted() -> None:
    log = drawn_log()
    some = log.select(np.flatnonzero(log.ranking[:, 0] != BETTER.rank(TRAIN.candidates, 1)[log.query, 0]))
    shown = np.zeros(TRAIN.candidates.n_documents, np.bool_)
    shown[some.documents] = True
    own = TRAIN.candidates.offsets[:-1, None] + BETTER.rank(TRAIN.candidates, 3)
    sessions = np.bincount(some.query, minlength=len(own))
    expected = (~shown[own] * sessions[:, None]).sum() / (3 * sessions.sum())
    assert estimate_gain(BETTER, some).never_shown == pytest.approx(expected)


def test_limits_of_the_reward_are_as_asked() -> None:
    log = drawn_log()
    assert estimate_gain(BETTER, log).reward_limits == (0, 1)
    assert estimate_gain(BETTER, log, estimand=Estimand(reward_limits=(0.1, 0.4))).reward_limits == (0.1, 0.4)


def test_lists_with_gaps_and_shorter_lists() -> None:
    log = simulate(SMALL, UniformLogger(), click_model("pbm"), 2_000, k=4, seed=1)
    short = np.arange(len(log)) % 2 == 0
    ranking, clicks = log.ranking.copy(), log.clicks.copy()
    ranking[short, 3], clicks[short, 3] = -1, 0
    cut = replace(log, ranking=ranking, clicks=clicks, examination=None)
    gap = np.array([0, 3, 1, 2])  # the empty position is the second
    moved = {
        name: np.where(short[:, None], values[:, gap], values)
        for name, values in cut.columns.items()
        if name in ("ranking", "clicks", "logging_propensity")
    }
    gaps = ClickLog.from_columns(cut.candidates, {**cut.columns, **moved}, aggregated=False)
    assert (gaps.ranking[:, 1] < 0).any()
    with_gaps, without = (estimate_gain(RandomPolicy(3), form) for form in (gaps, cut))
    assert with_gaps.gain == pytest.approx(without.gain)
    lists = logged_lists(UniformLogger(), cut)
    np.testing.assert_allclose(lists.ratio_above(), 1.0, rtol=1e-6)


def test_a_log_without_propensities_is_refused() -> None:
    with pytest.raises(InputError, match=r"\(logging_propensity\), found none$"):
        estimate_gain(BETTER, replace(drawn_log(), logging_propensity=None))


@pytest.mark.parametrize("wrong", [0.0, -0.1, 1.5, np.nan])
def test_a_propensity_that_is_none_is_refused(wrong: float) -> None:
    log = drawn_log()
    assert log.logging_propensity is not None
    propensity = log.logging_propensity.copy()
    propensity[4, 1] = wrong
    expected = f"logging_propensity: expected above 0 and at most 1, found {wrong:g} in session 5, position 2"
    with pytest.raises(InputError) as error:
        estimate_gain(BETTER, replace(log, logging_propensity=propensity))
    assert error.value.problems == [expected]


def test_a_policy_of_other_features_is_refused() -> None:
    other = replace(TRAIN, candidates=_with_one_feature(TRAIN.candidates))
    with pytest.raises(InputError) as error:
        estimate_gain(fit_ranksvm(other, 0.1, 1), drawn_log())
    assert error.value.problems == ["expected documents with 1 features, as in training, found 10"]


def _with_one_feature(candidates: Candidates) -> Candidates:
    return replace(candidates, features=candidates.features[:, :1], feature_names=None)


@pytest.mark.parametrize(
    ("estimand", "message"),
    [
        (Estimand(reward="reward"), "expected a column of rewards"),
        (Estimand(k=4), "k: expected 1 to 3, found 4"),
        (Estimand(position_weights=(1.0,)), "position_weights: expected 3 finite numbers"),
        (Estimand(reward_limits=(1.0, 0.0)), "reward_limits: expected two finite numbers, low <= high"),
    ],
)
def test_an_estimand_that_the_log_does_not_have_is_refused(estimand: Estimand, message: str) -> None:
    with pytest.raises(InputError, match=message):
        estimate_gain(BETTER, drawn_log(), estimand=estimand)


def test_without_the_logging_policy_item_position_ips_takes_shares_of_sessions() -> None:
    """With the shares as propensities, a document at a position has its mean logged reward."""
    log = simulate(SMALL, UniformLogger(), click_model("pbm"), 2_000, k=2, seed=4)
    found = estimate_gain(BETTER, log, "item-position-ips", control_variate=False)
    wanted = np.asarray(BETTER.rank(log.candidates, 2))[log.query]
    value = 0.0
    for query in np.unique(log.query):
        of_query = log.query == query
        for position in range(2):
            same = of_query & (log.ranking[:, position] == wanted[:, position])
            if same.any():
                value += of_query.sum() * log.clicks[same, position].mean()
    assert found.value == pytest.approx(value / len(log))
    assert found.unsupported == pytest.approx(found.unobserved)


def test_shares_of_sessions_give_the_true_gain_for_position_based_users() -> None:
    log = drawn_log(sessions=100_000)
    found = estimate_gain(BETTER, log, "item-position-ips")
    per_query = evaluate(BETTER, TRAIN, ["clicks:pbm@3"]).per_query["clicks:pbm@3"]
    truth = (per_query * np.bincount(log.query)).sum() / len(log) - log.clicks.sum() / len(log)
    assert found.bounds[0] < truth < found.bounds[1]
    known = estimate_gain(BETTER, log, "item-position-ips", logging_policy=DRAWN)
    assert found.gain == pytest.approx(known.gain, abs=0.05)


def test_missing_features_do_not_matter_to_the_reward_model() -> None:
    log = drawn_log()
    features = log.candidates.features.copy()
    features[::7, 0] = np.nan
    found = logged_lists(UniformLogger(), replace(log, candidates=replace(log.candidates, features=features)))
    assert np.isfinite(CascadeDoublyRobust().contributions(found).values).all()


@dataclass(frozen=True)
class FittedBefore:
    """What is left of a fitted `Ranker`."""

    policy_: RankingPolicy


def test_a_fitted_ranker_is_its_policy() -> None:
    log = drawn_log()
    assert estimate_gain(FittedBefore(BETTER), log) == estimate_gain(BETTER, log)
