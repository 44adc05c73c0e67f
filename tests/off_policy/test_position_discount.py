import numpy as np
import pytest

from cuolr.clicks.click_model import click_model
from cuolr.clicks.simulate import simulate
from cuolr.errors import InputError
from cuolr.logs.clicklog import ClickLog
from cuolr.off_policy.assess import assess
from cuolr.off_policy.position_discount import Discount, discount_weights, weights_in_lists
from cuolr.policies.plackett_luce import StochasticLogger
from tests.off_policy.policies import BETTER, LOGGER, TRAIN

DRAWN = StochasticLogger(LOGGER, float(np.std(LOGGER.score(TRAIN.candidates))))


def test_weights_by_hand() -> None:
    assert discount_weights(None, 2).tolist() == [1, 1]
    assert discount_weights("dcg", 4) == pytest.approx([1, 1 / np.log2(3), 1 / 2, 1 / np.log2(5)])
    assert discount_weights((1, 0.5, 0.25), 2).tolist() == [1, 0.5]
    shown = np.array([[True, True, True, False], [False, True, False, True]])
    assert weights_in_lists(shown, np.array([1, 0.5])).tolist() == [[1, 0.5, 0, 0], [0, 1, 0, 0.5]]


@pytest.mark.parametrize("discount", ["ndcg", (1.0,), (1.0, -1.0), (0.0, 1.0), (1.0, np.nan)])
def test_what_is_no_discount_is_refused(discount: Discount) -> None:
    with pytest.raises(InputError, match="discount: expected 'dcg' or "):
        discount_weights(discount, 2)


def test_a_discount_that_counts_the_first_position_alone_is_a_list_of_one() -> None:
    log = simulate(TRAIN, DRAWN, click_model("pbm"), 12_000, k=3, seed=1)
    first, one = assess(BETTER, log, discount=(1, 0, 0)), assess(BETTER, log, k=1)
    for name in ("pbm", "reward-interaction-ips", "item-position-ips"):
        of_first, of_one = (next(e for e in found.estimates if e.estimator == name) for found in (first, one))
        assert of_first.gain == pytest.approx(of_one.gain)
        assert of_first.interval == pytest.approx(of_one.interval)
    assert first.sessions_for_test == one.sessions_for_test
    assert "discounted clicks" in first.reason
    assert "discounted clicks" not in one.reason


@pytest.mark.parametrize("model", ["pbm", "dcm"])
def test_the_interval_has_the_true_discounted_gain(model: str) -> None:
    weights = discount_weights("dcg", 5)

    def discounted(log: ClickLog) -> float:
        return float((log.clicks * weights).sum(axis=1).mean())

    log = simulate(TRAIN, DRAWN, click_model(model), 20_000, k=5, seed=1)
    # The same queries in the same sessions.
    ranked = simulate(TRAIN, BETTER, click_model(model), 400_000, k=5, seed=1)
    truth = discounted(ranked) / discounted(simulate(TRAIN, DRAWN, click_model(model), 400_000, k=5, seed=1)) - 1
    found = assess(BETTER, log, discount="dcg")
    plain = assess(BETTER, log)
    assert found.interval[0] - 0.005 < truth < found.interval[1] + 0.005
    assert found.gain > plain.gain  # a better order counts more where the top does
