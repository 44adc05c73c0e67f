import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from cuolr.learners.counterfactual.two_tower import TwoTower
from tests.learners.lists import K, build, random_batch


def built(**settings: Any) -> TwoTower:
    learner = build("two-tower", **settings)
    assert isinstance(learner, TwoTower)
    return learner


def test_the_loss_is_the_cross_entropy_of_the_sum_of_both_logits() -> None:
    learner, batch = built(), random_batch(lengths=(3,))
    with torch.no_grad():
        learner.position["logits"].copy_(torch.tensor([0.5, -1.0, 0.25, 9.0]))
    chances = [
        1 / (1 + math.exp(-score - position))
        for score, position in zip(learner.ranker(batch.features)[0, :3].tolist(), [0.5, -1.0, 0.25], strict=True)
    ]
    clicks = batch.rewards[0, :3].tolist()
    expected = -sum(math.log(p if click else 1 - p) for p, click in zip(chances, clicks, strict=True))
    assert learner.losses(batch)["click_loss"].tolist() == pytest.approx([expected])


def test_positions_and_documents_are_told_apart() -> None:
    """Lists in random order with clicks of the model itself: both logits are found, up to a constant."""
    learner = built(learning_rate=0.003, position_learning_rate=0.02, hidden=[32])
    positions = torch.tensor([0.0, -0.5, -1.5, -2.0])
    batch = random_batch(lengths=(K,) * 400)
    documents = 2 * batch.features[:, :, 0]
    batch = replace(batch, rewards=(documents + positions).sigmoid(), weight=torch.ones(400))
    for _ in range(400):
        learner.update(batch)
    found = learner.position["logits"] - learner.position["logits"][0]
    assert found.tolist() == pytest.approx(positions.tolist(), abs=0.15)
    scores = learner.ranker(batch.features).detach().flatten()
    assert float(torch.corrcoef(torch.stack([scores, documents.flatten()]))[0, 1]) > 0.99


def test_documents_are_ranked_by_their_own_logit_alone() -> None:
    learner = built()
    before = learner.policy().arrays()
    with torch.no_grad():
        learner.position["logits"].copy_(torch.tensor([3.0, -3.0, 0.0, 1.0]))
    after = learner.policy().arrays()
    assert all((after[name] == values).all() for name, values in before.items())
