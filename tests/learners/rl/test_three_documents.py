from typing import Any, cast

import numpy as np
import pytest
import torch

from cuolr.learners.rl.dqn import DQN
from cuolr.learners.rl.sequential import SequentialLearner
from cuolr.types import Candidates
from tests.learners.lists import build
from tests.learners.rl.three_documents import BEST_ORDER, BEST_VALUES, DISCOUNT, FEATURES, all_six_orders

pytestmark = pytest.mark.thorough

STEPS = {"sac": 1_000, "cql": 1_000, "dqn": 2_000, "iql": 1_500}
SETTINGS: dict[str, dict[str, Any]] = {
    "sac": {"actor_learning_rate": 3e-3},
    "cql": {"actor_learning_rate": 3e-3, "conservative_weight": 0.0},
    "dqn": {},
    "iql": {"actor_learning_rate": 3e-3, "value_learning_rate": 3e-3},
}


def trained(name: str) -> SequentialLearner:
    settings: dict[str, Any] = {
        "discount": DISCOUNT,
        "critic_learning_rate": 3e-3,
        "target_rate": 0.05,
        "hidden": [32, 32],
    }
    learner = cast(SequentialLearner, build(name, n_features=3, k=3, **settings | SETTINGS[name]))
    for _ in range(STEPS[name]):
        learner.update(all_six_orders())
    return learner


@pytest.mark.parametrize("order", ["ABC", "CBA", "BCA"])
@pytest.mark.parametrize("name", SETTINGS)
def test_it_learns_the_best_ranking(learners: dict[str, SequentialLearner], name: str, order: str) -> None:
    features = np.array([FEATURES[document] for document in order], np.float32)
    ranking = learners[name].policy().rank(Candidates(features, np.array([0, 3]), np.array(["query"])), 3)
    assert "".join(order[slot] for slot in ranking[0]) == BEST_ORDER


def test_dqn_learns_the_values_within_two_percent(learners: dict[str, SequentialLearner]) -> None:
    learner = learners["dqn"]
    assert isinstance(learner, DQN)
    for (placed, document), value in BEST_VALUES.items():
        shown = torch.tensor([[FEATURES[above] for above in placed]]).view(1, len(placed), 3)
        with torch.no_grad():
            q = learner.critics[0](learner.encoder(shown)[:, -1], torch.tensor([FEATURES[document]]))
        assert q.item() == pytest.approx(value, rel=0.02), (placed, document)


@pytest.fixture(scope="module")
def learners() -> dict[str, SequentialLearner]:
    return {name: trained(name) for name in SETTINGS}
