"""A problem of three documents whose values are worked by hand.

The cascade model: a user goes down the list to the first click, so P(click) = attractiveness × what came above was not
attractive. Documents A, B and C attract with probability 0.8, 0.5 and 0.2, and the discount is 0.8.
"""

from itertools import permutations
from typing import Any, cast

import numpy as np
import pytest
import torch

from cuolr.learners.rl.dqn import DQN
from cuolr.learners.rl.sequential import SequentialLearner
from cuolr.training.batches import SessionBatch
from cuolr.types import Candidates
from tests.learners.lists import build

pytestmark = pytest.mark.thorough

DISCOUNT = 0.8
BEST_ORDER = "ABC"

# Q*(what is placed, what is placed next) = P(click) + 0.8 × the best that can follow.
BEST_VALUES = {
    # the last position: only the click
    ("AB", "C"): 0.2 * 0.5 * 0.2,
    ("BA", "C"): 0.5 * 0.2 * 0.2,
    ("AC", "B"): 0.2 * 0.8 * 0.5,
    ("CA", "B"): 0.8 * 0.2 * 0.5,
    ("BC", "A"): 0.5 * 0.8 * 0.8,
    ("CB", "A"): 0.8 * 0.5 * 0.8,
    # the second: one document is left to follow
    ("A", "B"): 0.2 * 0.5 + 0.8 * (0.2 * 0.5 * 0.2),  # 0.116
    ("A", "C"): 0.2 * 0.2 + 0.8 * (0.2 * 0.8 * 0.5),  # 0.104
    ("B", "A"): 0.5 * 0.8 + 0.8 * (0.5 * 0.2 * 0.2),  # 0.416
    ("B", "C"): 0.5 * 0.2 + 0.8 * (0.5 * 0.8 * 0.8),  # 0.356
    ("C", "A"): 0.8 * 0.8 + 0.8 * (0.8 * 0.2 * 0.5),  # 0.704
    ("C", "B"): 0.8 * 0.5 + 0.8 * (0.8 * 0.5 * 0.8),  # 0.656
    # the first: the better of the two above follows
    ("", "A"): 0.8 + 0.8 * 0.116,  # 0.8928
    ("", "B"): 0.5 + 0.8 * 0.416,  # 0.8328
    ("", "C"): 0.2 + 0.8 * 0.704,  # 0.7632
}

FEATURES = {"A": [1.0, 0.0, 0.0], "B": [0.0, 1.0, 0.0], "C": [0.0, 0.0, 1.0]}
ATTRACTIVENESS = {"A": 0.8, "B": 0.5, "C": 0.2}


def all_six_orders() -> SessionBatch:
    """Each order once, as a log gives it that is aggregated over very many sessions: with the mean click."""
    orders = list(permutations("ABC"))
    clicks = []
    for order in orders:
        not_clicked_above = 1.0
        for document in order:
            clicks.append(not_clicked_above * ATTRACTIVENESS[document])
            not_clicked_above *= 1 - ATTRACTIVENESS[document]
    return SessionBatch(
        features=torch.tensor([[FEATURES[document] for document in order] for order in orders]),
        rewards=torch.tensor(clicks).view(6, 3),
        where=torch.ones(6, 3, dtype=torch.bool),
        weight=torch.ones(6),
    )


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
    batch = all_six_orders()
    for _ in range(STEPS[name]):
        learner.update(batch)
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
