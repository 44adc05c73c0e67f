"""The estimates of the Open Bandit Pipeline on a log of slates, see ../shared/data/obp-slate."""

from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from cuolr.off_policy.estimators.cascade_dr import CascadeDoublyRobust
from cuolr.off_policy.estimators.off_policy_estimator import off_policy_estimator
from cuolr.off_policy.logged_lists import ListProbabilities, LoggedLists
from cuolr.off_policy.paired_gain import paired_gain
from cuolr.types import Doubles, Ints
from tests.off_policy.policies import OneHot

K, ACTIONS, TRUTH = 5, 8, 2.3248


def given_above(cumulative: Doubles) -> Doubles:
    """From the probabilities of the actions down to each position."""
    above = np.concatenate([np.ones((len(cumulative), 1)), cumulative[:, :-1]], axis=1)
    given: Doubles = cumulative / above
    return given


def features_of(actions: Ints, probabilities: Doubles) -> OneHot:
    """One-hot actions. The evaluation policy is Plackett–Luce with other rates in each round.

    The file has the rates of the actions shown. What is left of the total is shared among the others in proportion to
    their mean rates over rounds, which is right on average: the logging policy does not depend on the context.
    """
    rates, left = np.full((len(actions), ACTIONS), np.nan), np.ones(len(actions))
    for position in range(K):
        rate = probabilities[:, position] * left
        np.put_along_axis(rates, actions[:, position, None], rate[:, None], axis=1)
        left = left - rate
    others = np.where(np.isnan(rates), np.nanmean(rates, axis=0), 0.0)
    others *= (left / others.sum(axis=1))[:, None]
    return OneHot(actions, np.where(np.isnan(rates), others, rates))


@cache
def slates(folder: Path) -> LoggedLists:
    table = pl.read_parquet(folder / "obp-slate" / "slates.parquet")

    def column(name: str) -> Doubles:
        return table[name].to_numpy().astype(np.float64).reshape(-1, K)

    shown, evaluation = column("action").astype(np.int64), given_above(column("evaluation_policy_pscore_cascade"))
    return LoggedLists(
        unit=np.arange(len(shown)),
        where=np.ones(shown.shape, np.bool_),
        reward=column("reward"),
        count=np.ones(len(shown), np.int64),
        logging=ListProbabilities(given_above(column("pscore_cascade")), column("pscore_item_position")),
        target=ListProbabilities(evaluation, column("evaluation_policy_pscore_item_position")),
        features=features_of(shown, evaluation),
    )


@pytest.mark.parametrize(
    ("name", "self_normalised", "value", "interval"),
    [
        ("list-ips", False, 2.313058, (2.2300, 2.3980)),
        ("item-position-ips", False, 2.494134, (2.4709, 2.5170)),
        ("reward-interaction-ips", False, 2.308297, (2.2642, 2.3518)),
        ("list-ips", True, 2.315246, None),
        ("snips", True, 2.315246, None),
        ("item-position-ips", True, 2.494512, None),
        ("reward-interaction-ips", True, 2.309594, None),
    ],
)
def test_estimates_are_those_of_the_reference(
    shared_data: Path, name: str, self_normalised: bool, value: float, interval: tuple[float, float] | None
) -> None:
    estimator = off_policy_estimator(name, self_normalised=self_normalised)
    found = paired_gain(slates(shared_data), estimator, control_variate=False)
    assert found.value == pytest.approx(value, abs=1e-6)
    if interval is not None:  # by bootstrap there
        assert found.value_interval == pytest.approx(interval, abs=0.005)


def test_cascade_dr_is_within_the_interval_of_the_reference(shared_data: Path) -> None:
    lists = slates(shared_data)
    found = paired_gain(lists, CascadeDoublyRobust())
    assert 2.3010 <= found.value <= 2.3520
    assert found.value_interval[0] < TRUTH < found.value_interval[1]
    plain = paired_gain(lists, off_policy_estimator("reward-interaction-ips"))
    assert np.ptp(found.interval) < np.ptp(plain.interval)


@pytest.mark.parametrize("name", ["list-ips", "item-position-ips", "reward-interaction-ips"])
def test_the_control_variate_narrows_the_interval_of_the_gain(shared_data: Path, name: str) -> None:
    estimator = off_policy_estimator(name)
    plain, corrected = (paired_gain(slates(shared_data), estimator, control) for control in (False, True))
    assert np.ptp(corrected.interval) < 0.75 * np.ptp(plain.interval)


def test_only_item_position_ips_misses_the_truth(shared_data: Path) -> None:
    """The users of this log are not position-based."""
    for name in ("list-ips", "snips", "item-position-ips", "reward-interaction-ips"):
        low, high = paired_gain(slates(shared_data), off_policy_estimator(name)).value_interval
        assert (low < TRUTH < high) == (name != "item-position-ips")


def test_mean_weights_are_as_expected(shared_data: Path) -> None:
    for name in ("list-ips", "item-position-ips", "reward-interaction-ips"):
        found = paired_gain(slates(shared_data), off_policy_estimator(name))
        assert np.abs(found.errors_of_mean_weights).max() < 3
        assert found.doubts == []
