from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from cuolr.config import SettingError
from cuolr.learners.rankers.base_ranker import RankerSteps, softmax_loss
from cuolr.learners.rankers.linear import LinearRanker
from cuolr.learners.rankers.network import NetworkConfig, NetworkRanker
from cuolr.learners.rankers.targets import TargetSampler, batches_of_targets
from cuolr.networks.layers import seeded
from cuolr.training.batches import Batches, WeightedLists
from cuolr.training.steps import NonFiniteLossError
from tests.learners.lists import no_scaling, random_batch
from tests.learners.rankers.small_targets import N_FEATURES, NORMALISER, small_targets
from tests.small_log import counted_log

TARGETS = small_targets()
SAMPLER = TargetSampler(TARGETS, np.arange(len(TARGETS)), 16, seed=1)
FEATURES = TARGETS.features.numpy()


def new_ranker(linear: bool = False, **settings: Any) -> NetworkRanker:
    config = NetworkConfig(**{"hidden": (8,), "learning_rate": 0.02, **settings})
    with seeded(3):
        if linear:
            return LinearRanker(N_FEATURES, 0.02, 1.0, NORMALISER, SAMPLER)
        return NetworkRanker(N_FEATURES, config, NORMALISER, SAMPLER)


@pytest.mark.parametrize("linear", [False, True], ids=["network", "linear"])
def test_scores_follow_the_targets(linear: bool) -> None:
    ranker = new_ranker(linear)
    losses = [ranker.step()["loss"] for _ in range(150)]
    assert np.mean(losses[-20:]) < np.mean(losses[:20])
    assert np.corrcoef(ranker.score(FEATURES), FEATURES[:, 0])[0, 1] > 0.9


def test_a_linear_ranker_is_linear_in_the_features() -> None:
    ranker = new_ranker(linear=True)
    ranker.step()
    at_zero, first, second = (ranker.score(x[None])[0] for x in (0 * FEATURES[0], FEATURES[0], FEATURES[1]))
    both = ranker.score((FEATURES[0] + FEATURES[1])[None])[0]
    assert both - at_zero == pytest.approx((first - at_zero) + (second - at_zero), abs=1e-6)


def test_a_step_is_the_gradient_step_of_adam_on_the_weighted_softmax_loss() -> None:
    """By hand: the first step of Adam moves each weight by the learning rate against the sign of its gradient."""
    ranker = new_ranker(max_gradient_norm=None)
    before = [parameter.detach().clone() for parameter in ranker.network.parameters()]
    batch = SAMPLER(0)
    loss = torch.tensor(0.0)
    for i in range(len(batch.weight)):
        real = batch.where[i]
        scores = ranker.network(batch.features[batch.documents[i][real]])
        loss = loss - batch.weight[i] * (batch.target[i][real] * scores.log_softmax(dim=0)).sum() / len(batch.weight)
    gradients = torch.autograd.grad(loss, list(ranker.network.parameters()), materialize_grads=True)
    assert ranker.step()["loss"] == pytest.approx(float(loss.detach()), rel=1e-5)
    for old, new, gradient in zip(before, ranker.network.parameters(), gradients, strict=True):
        known = gradient.abs() > 1e-5
        torch.testing.assert_close((old - new)[known], 0.02 * gradient.sign()[known], rtol=0.01, atol=1e-6)


def test_a_step_in_parts_is_the_step_of_the_whole_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of lists of up to 6 documents, parts of about 9: the gradients of the parts add up."""
    whole, in_parts, batch = new_ranker(), new_ranker(), SAMPLER(0)
    losses = [whole.descend(batch)]
    monkeypatch.setattr("cuolr.learners.rankers.network.DOCUMENTS_AT_A_TIME", 9)
    losses.append(in_parts.descend(batch))
    assert losses[1] == pytest.approx(losses[0], rel=1e-6)
    for one, other in zip(whole.network.parameters(), in_parts.network.parameters(), strict=True):
        assert one.grad is not None
        assert other.grad is not None
        torch.testing.assert_close(other.grad, one.grad, rtol=1e-5, atol=1e-7)


def test_parts_of_a_batch_are_its_lists_in_order() -> None:
    batch = SAMPLER(0)
    parts = list(batch.parts(9))
    assert len(parts) > 1
    assert len(list(batch.parts(1_000))) == 1
    torch.testing.assert_close(torch.cat([part.target for part in parts]), batch.target)
    sizes = [int(part.where.sum()) for part in parts]
    assert max(sizes) < 9 + 6


def test_batches_may_come_from_anywhere() -> None:
    drawn, given = new_ranker(), new_ranker()
    for step in range(3):
        assert drawn.step()["loss"] == given.descend(SAMPLER(step))
    np.testing.assert_array_equal(drawn.score(FEATURES), given.score(FEATURES))


def test_lists_without_a_document_or_a_target_leave_finite_weights() -> None:
    ranker, batch = new_ranker(), SAMPLER(0)
    ranker.descend(replace(batch, where=torch.zeros_like(batch.where), target=torch.zeros_like(batch.target)))
    ranker.descend(replace(batch, target=torch.zeros_like(batch.target)))
    assert np.isfinite(ranker.score(FEATURES)).all()


def test_a_loss_that_is_not_finite_changes_nothing() -> None:
    ranker, batch = new_ranker(), SAMPLER(0)
    before = ranker.score(FEATURES)
    with pytest.raises(NonFiniteLossError, match="ranking_loss"):
        ranker.descend(replace(batch, target=batch.target * float("inf")))
    np.testing.assert_array_equal(ranker.score(FEATURES), before)


def test_later_steps_do_not_change_a_policy() -> None:
    ranker = new_ranker()
    policy = ranker.policy()
    before = policy.score_scaled(FEATURES)
    np.testing.assert_allclose(before, ranker.score(FEATURES), rtol=1e-5, atol=1e-6)
    ranker.step()
    np.testing.assert_array_equal(policy.score_scaled(FEATURES), before)


@pytest.mark.parametrize("linear", [False, True], ids=["network", "linear"])
def test_a_ranker_that_is_resumed_ends_as_one_that_was_not_stopped(linear: bool) -> None:
    whole, stopped, resumed = (new_ranker(linear) for _ in range(3))
    for _ in range(6):
        whole.step()
    for _ in range(3):
        stopped.step()
    resumed.load_state(stopped.state())
    for _ in range(3):
        resumed.step()
    np.testing.assert_array_equal(resumed.score(FEATURES), whole.score(FEATURES))


@pytest.mark.parametrize("settings", [{"hidden": (0,)}, {"learning_rate": -1.0}, {"max_gradient_norm": 0.0}])
def test_settings_out_of_range_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match=next(iter(settings))):
        NetworkConfig(**settings)


def test_lists_without_a_document_have_no_loss_and_no_nan_in_the_gradient() -> None:
    scores = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    where = torch.tensor([[True, True], [False, False]])
    losses = softmax_loss(scores, torch.tensor([[1.0, 0.0], [0.0, 0.0]]), where)
    losses.sum().backward()  # type: ignore[no-untyped-call]
    assert losses[1] == 0
    assert scores.grad is not None
    assert scores.grad.isfinite().all()


def test_the_loss_is_linear_in_the_targets() -> None:
    generator = torch.Generator().manual_seed(0)
    scores, first, second = (torch.rand(3, 4, generator=generator) for _ in range(3))
    where = torch.ones(3, 4, dtype=torch.bool)
    mean = softmax_loss(scores, (first + second) / 2, where)
    torch.testing.assert_close(mean, (softmax_loss(scores, first, where) + softmax_loss(scores, second, where)) / 2)


def first_feature(documents: torch.Tensor) -> torch.Tensor:
    return documents[:, 0]


def test_selected_lists_have_the_scores_of_their_documents() -> None:
    rows = np.array([7, 2, 7])
    scores = TARGETS.select(rows).scores(first_feature)
    for i, row in enumerate(rows):
        for j in range(TARGETS.where.shape[1]):
            assert scores[i, j] == TARGETS.features[TARGETS.documents[row, j], 0]
    torch.testing.assert_close(TARGETS.select(rows).target, TARGETS.target[rows])
    torch.testing.assert_close(TARGETS.select(rows).weight, TARGETS.weight[rows])


def test_only_documents_are_scored_and_the_rest_is_0() -> None:
    scored = []

    def one_each(documents: torch.Tensor) -> torch.Tensor:
        scored.append(len(documents))
        return torch.ones(len(documents))

    assert not TARGETS.where.all()
    torch.testing.assert_close(TARGETS.scores(one_each), TARGETS.where.float())
    assert scored == [int(TARGETS.where.sum())]


def test_gradients_of_scores_reach_each_document_once() -> None:
    features = TARGETS.features.clone().requires_grad_()
    replace(TARGETS, features=features).scores(first_feature).sum().backward()  # type: ignore[no-untyped-call]
    assert features.grad is not None
    shown = torch.bincount(TARGETS.documents[TARGETS.where], minlength=len(features)).float()
    torch.testing.assert_close(features.grad[:, 0], shown)


def test_a_sampled_batch_depends_on_seed_stream_and_step_alone() -> None:
    def weights(seed: int, stream: int, step: int) -> list[float]:
        return TargetSampler(TARGETS, np.arange(len(TARGETS)), 16, seed, stream)(step).weight.tolist()

    first = weights(1, 0, 3)
    assert weights(1, 0, 3) == first
    assert first not in (weights(2, 0, 3), weights(1, 1, 3), weights(1, 0, 4))


def test_only_the_given_lists_are_sampled() -> None:
    rows = np.array([4, 9])
    batch = TargetSampler(TARGETS, rows, 50, seed=1)(0)
    assert set(batch.weight.tolist()) == set(TARGETS.weight[rows].tolist())


def network_on(batches: Batches) -> NetworkRanker:
    with seeded(1):
        return NetworkRanker(4, NetworkConfig((8,)), no_scaling(), batches_of_targets(batches))


def test_the_held_out_score_is_the_softmax_loss_turned_round() -> None:
    batches = Batches(WeightedLists.of(counted_log()), no_scaling(), 8, seed=1)
    ranker = network_on(batches)
    batch = random_batch(lengths=(4, 0, 2), n_features=4)
    expected = -softmax_loss(ranker.network(batch.features), batch.rewards, batch.where)
    torch.testing.assert_close(RankerSteps(ranker, None).held_out_scores(batch), expected.detach())
    steps = RankerSteps(ranker, batches)
    assert steps.held_out_score() == batches.mean(steps.held_out_scores)


def test_a_step_takes_the_batch_of_its_number() -> None:
    batches = Batches(WeightedLists.of(counted_log()), no_scaling(), 8, seed=1)
    steps, by_hand = RankerSteps(network_on(batches), None), network_on(batches)
    for number in range(3):
        assert steps.step() == {"loss": by_hand.descend(batches_of_targets(batches)(number))}
    for name, values in steps.policy().arrays().items():
        assert (values == by_hand.policy().arrays()[name]).all()


def test_a_batch_that_could_hold_all_lists_has_each_of_them_once() -> None:
    rows = np.array([4, 9, 2])
    for size in (3, 50):
        torch.testing.assert_close(TargetSampler(TARGETS, rows, size, seed=1)(7).weight, TARGETS.weight[rows])
    assert len(TargetSampler(TARGETS, rows, 2, seed=1)(7).weight) == 2
