from dataclasses import replace
from math import log

import numpy as np
import pytest
import torch

from cuolr.learners.rl.bc import BC
from cuolr.types import Candidates
from tests.learners.lists import N_FEATURES, K, build, random_batch


def test_a_policy_that_knows_nothing_pays_the_entropy_of_a_uniform_choice() -> None:
    learner = build("bc")
    assert isinstance(learner, BC)
    with torch.no_grad():
        learner.actor.output.weight.zero_()
    batch = replace(random_batch(lengths=(4, 2)), weight=torch.ones(2))
    long, short = log(4) + log(3) + log(2) + log(1), log(2) + log(1)
    assert learner.held_out_scores(batch).tolist() == pytest.approx([-long / 4, -short / 2])
    assert learner.update(batch)["actor_loss"] == pytest.approx((long + short) / 6)


def test_it_learns_the_order_of_the_log() -> None:
    learner = build("bc", actor_learning_rate=1e-2)
    batch = random_batch(lengths=(K,) * 40)
    order = batch.features[:, :, 0].argsort(dim=1, descending=True)
    batch = replace(batch, features=batch.features.gather(1, order[:, :, None].expand_as(batch.features)))
    for _ in range(150):
        learner.update(batch)
    values = np.random.default_rng(0).uniform(-1, 1, (30, N_FEATURES)).astype(np.float32)
    values[:, 0] = np.tile([-0.8, 0.1, 0.9], 10)
    ranking = learner.policy().rank(Candidates(values, 3 * np.arange(11), np.arange(10).astype(str)), 3)
    assert (ranking == [2, 1, 0]).mean() > 0.9


def test_clicks_do_not_matter_to_it() -> None:
    batch = random_batch()
    assert build("bc").update(batch) == build("bc").update(replace(batch, rewards=1 - batch.rewards))
