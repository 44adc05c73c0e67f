from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cuolr.data.normalise import Normaliser
from cuolr.learners.factored.click_rate_prior import PriorFit, fit_reward_prior
from cuolr.logs.counts import ClickCounts
from cuolr.logs.reward_scale import on_click_scale
from cuolr.logs.scaled_documents import ScaledDocuments
from cuolr.types import Doubles
from tests.learners.test_rewards import SHOP

NONE = np.empty(0, np.int64)
FIT = PriorFit(steps=300, learning_rate=1e-2, batch_size=16, seed=1)


def prior(reward: npt.NDArray[Any] | None) -> tuple[Doubles, Doubles]:
    """The fitted mean reward of a click by kind of document, and that of the log."""
    log, _ = on_click_scale(replace(SHOP, reward=None if reward is None else reward.astype(np.float32)), NONE)
    counts = ClickCounts.of(log)
    shown = ScaledDocuments.of(counts.lists, Normaliser.fit("min-max", log.candidates))
    fitted = fit_reward_prior(counts, shown, np.arange(len(counts.lists)), FIT)
    mean = [log.rewards[log.ranking == kind].sum() / log.clicks[log.ranking == kind].sum() for kind in range(3)]
    return fitted.reshape(-1, 3).mean(axis=0), np.array(mean)


def test_the_mean_reward_of_a_click_is_learned_from_features() -> None:
    fitted, mean = prior(SHOP.clicks * (1.0 + 2 * SHOP.ranking))
    np.testing.assert_allclose(fitted, mean, rtol=0.02)


def test_a_constant_reward_needs_no_network() -> None:
    for reward in (None, 3.0 * SHOP.clicks):
        np.testing.assert_array_equal(prior(reward)[0], [1, 1, 1])


def test_without_lists_to_learn_from_no_step_is_taken() -> None:
    log, _ = on_click_scale(SHOP, NONE)
    counts = ClickCounts.of(log)
    shown = ScaledDocuments.of(counts.lists, Normaliser.fit("min-max", log.candidates))
    untrained = fit_reward_prior(counts, shown, NONE, FIT)
    np.testing.assert_allclose(untrained, 1, atol=0.7)
    assert (untrained == fit_reward_prior(counts, shown, np.arange(len(counts.lists)), replace(FIT, steps=0))).all()
