from math import exp, log
from typing import Any

import pytest
import torch

from cuolr.errors import InputError
from cuolr.learners.rl.cql import CQL
from cuolr.learners.rl.mdp import Episodes
from tests.learners.lists import build, random_batch


def built(**settings: Any) -> CQL:
    learner = build("cql", **settings)
    assert isinstance(learner, CQL)
    return learner


@pytest.mark.parametrize("candidates", ["shown", "all"])
def test_with_weight_zero_it_is_sac_to_the_bit(candidates: str) -> None:
    cql, sac = built(conservative_weight=0.0, candidates=candidates), build("sac", candidates=candidates)
    for seed in range(5):
        batch = random_batch(seed, lengths=(4, 2, 3, 4), n_unshown=3)
        assert cql.update(batch) == sac.update(batch)
        assert torch.equal(cql.held_out_scores(batch), sac.held_out_scores(batch))
    ours, theirs = cql.state()["networks"], sac.state()["networks"]
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_with_a_tiny_weight_it_is_nearly_sac() -> None:
    cql, sac = built(conservative_weight=1e-9), build("sac")
    for seed in range(3):
        plotted, expected = cql.update(random_batch(seed)), sac.update(random_batch(seed))
        del plotted["conservative_loss"]
        assert plotted == pytest.approx(expected, rel=1e-4, abs=1e-5)


Q = [[1.0, 2.0, 3.0], [0.0, 0.5, -1.0], [0.0, 0.0, 0.25]]  # Q(s_t, document j), of which j ≥ t count


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        (
            "logged",
            (log(exp(1) + exp(2) + exp(3)) - 1 + log(exp(0.5) + exp(-1)) - 0.5 + log(exp(0.25)) - 0.25) / 3,
        ),
        (
            "mean",
            (log(exp(1) + exp(2) + exp(3)) - (1 + 2 + 3) / 3 + log(exp(0.5) + exp(-1)) - (0.5 - 1) / 2) / 3,
        ),
    ],
)
def test_the_conservative_term_is_that_of_equation_five(term: str, expected: float) -> None:
    learner = built(conservative_weight=0.1, conservative_term=term)
    episodes = Episodes.of(random_batch(lengths=(3,), k=3), with_unshown=False)
    q = torch.tensor(Q)[:, :, None]
    losses = learner.critic_terms(episodes, [q, q])
    weight = episodes.weight.item()
    assert losses["conservative_loss"].item() == pytest.approx(2 * 0.1 * weight * expected, rel=1e-5)


def test_the_term_lowers_the_value_of_what_was_not_logged() -> None:
    batch = random_batch()
    episodes = Episodes.of(batch, with_unshown=False)

    def gap(weight: float) -> float:
        learner = built(conservative_weight=weight, critic_learning_rate=1e-2)
        for _ in range(100):
            learner.update(batch)
        with torch.no_grad():
            q = learner.critics[0].remaining(learner.states(episodes), episodes.documents)
        return float((episodes.logged(q)[0] - q[0].mean(dim=0)).mean())

    assert gap(1.0) > gap(0.0) + 0.1


def test_a_negative_weight_is_refused() -> None:
    with pytest.raises(InputError, match=r"setting 'learner\.conservative_weight': expected a finite number >= 0"):
        built(conservative_weight=-1.0)
    with pytest.raises(InputError, match="expected a finite number >= 0, found inf"):
        built(conservative_weight=float("inf"))
