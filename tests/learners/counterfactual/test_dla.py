import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from cuolr.clicks.pbm import EYE_TRACKING, PositionBasedModel
from cuolr.clicks.simulate import Simulation
from cuolr.learners.counterfactual.dla import DLA, inverse_ratio
from cuolr.learners.rankers.base_ranker import softmax_loss
from cuolr.logs.aggregate import aggregate
from cuolr.logs.log_folder import concatenate
from cuolr.policies.random_policy import UniformLogger
from cuolr.training.batches import SessionBatch
from cuolr.training.presets.configure import configure
from tests.data.small_data import dataset_of
from tests.learners.lists import K, build, new, random_batch
from tests.training.tasks import task_of


def built(**settings: Any) -> DLA:
    learner = build("dla", **settings)
    assert isinstance(learner, DLA)
    return learner


def set_examination(learner: DLA, examination: list[float]) -> None:
    with torch.no_grad():
        learner.examination.logits.copy_(torch.tensor(examination).log())  # type: ignore[operator]


def test_each_loss_is_weighted_by_the_other_network() -> None:
    learner, batch = built(), random_batch()
    examination = [0.8, 0.4, 0.2, 0.1]
    set_examination(learner, examination)
    scores = learner.ranker(batch.features).detach()
    losses = learner.losses(batch)
    by_examination = batch.rewards * torch.tensor([0.8 / value for value in examination])
    torch.testing.assert_close(losses["ranking_loss"], softmax_loss(scores, by_examination, batch.where))
    by_relevance = batch.rewards * torch.tensor([[math.exp(row[0] - s) for s in row] for row in scores.tolist()])
    logits = torch.tensor(examination).log().expand(len(scores), K)
    torch.testing.assert_close(losses["examination_loss"], softmax_loss(logits, by_relevance, batch.where))


def test_the_weights_have_no_gradient() -> None:
    learner, batch = built(), random_batch()
    learner.losses(batch)["ranking_loss"].sum().backward()  # type: ignore[no-untyped-call]
    assert all(parameter.grad is None for parameter in learner.examination.parameters())
    learner = built()
    learner.losses(batch)["examination_loss"].sum().backward()  # type: ignore[no-untyped-call]
    assert all(parameter.grad is None for parameter in learner.ranker.parameters())


def test_a_weight_beyond_the_bound_has_no_further_effect() -> None:
    def loss(last: float) -> torch.Tensor:
        learner = built(max_weight=5.0)
        set_examination(learner, [1.0, 1.0, 1.0, last])
        return learner.losses(random_batch())["ranking_loss"]

    assert not torch.equal(loss(1 / 3), loss(1 / 4))
    assert torch.equal(loss(1 / 5.001), loss(1 / 1_000))
    assert torch.equal(loss(1 / 5.001), loss(0.0))


def test_the_bound_holds_for_the_weights_of_examination_too() -> None:
    batch = random_batch()

    def loss(scale: float) -> torch.Tensor:
        learner = built(max_weight=1.0)
        learner.ranker.output.weight.data *= scale
        learner.ranker.output.bias.data *= scale
        return learner.losses(replace(batch, rewards=torch.ones_like(batch.rewards)))["examination_loss"]

    # With a bound of 1 only documents that are better than the first have a weight below it.
    scores = built().ranker(batch.features).detach()
    expected = inverse_ratio(scores, 1.0)
    assert (expected <= 1).all()
    torch.testing.assert_close(loss(1.0), expected.sum(dim=1) * math.log(K))


def clicks_of_a_position_based_model(sessions: int = 400) -> SessionBatch:
    """Lists in random order, with the expected clicks of users who look at positions as in the eye-tracking study."""
    batch = random_batch(lengths=(K,) * sessions)
    attractiveness = (2 * batch.features[:, :, 0]).sigmoid()
    examination = torch.tensor(EYE_TRACKING[:K])
    return replace(batch, rewards=attractiveness * examination, weight=torch.ones(sessions))


@pytest.mark.parametrize("model", ["free", "network"])
def test_examination_is_learned_from_clicks_alone(model: str) -> None:
    learner = built(examination_model=model, examination_learning_rate=0.02, learning_rate=0.003, hidden=[32])
    batch = clicks_of_a_position_based_model()
    for _ in range(250):
        learner.update(batch)
    learned = (learner.examination() - learner.examination()[0]).exp().tolist()
    assert learned == pytest.approx([value / EYE_TRACKING[0] for value in EYE_TRACKING[:K]], rel=0.05)


def test_held_out_clicks_are_explained_best_by_the_true_examination() -> None:
    learner, batch = built(), clicks_of_a_position_based_model()
    for _ in range(100):
        learner.update(batch)
    values = []
    for examination in ([0.68, 0.61, 0.48, 0.34], [1.0, 1.0, 1.0, 1.0], [0.34, 0.48, 0.61, 0.68]):
        set_examination(learner, examination)
        values.append(float(learner.held_out_scores(batch).mean()))
    assert values == sorted(values, reverse=True)


def test_shorter_lists_than_the_longest_are_no_problem() -> None:
    batch = random_batch(lengths=(2, 1), k=2)
    assert built().update(batch).keys() == {"loss", "ranking_loss", "examination_loss"}


def test_another_ranker_is_trained_on_the_examination_that_the_joint_model_learned() -> None:
    """Lists in random order with the expected clicks of a position-based model, by features that explain them."""
    dataset, model = dataset_of(*[4] * 20, max_grade=2), PositionBasedModel()
    log = concatenate(Simulation(dataset, UniformLogger(), model, 40_000, k=4).blocks(), 40_000)
    learner = new("dla", hidden=[16], learning_rate=0.01, examination_learning_rate=0.02, ranker="lambdamart")
    assert isinstance(learner, DLA)
    found = learner.learned_examination(task_of(aggregate(log), batch_size=256))
    assert found.tolist() == pytest.approx([value / EYE_TRACKING[0] for value in EYE_TRACKING[:4]], rel=0.12)


def test_the_steps_of_the_joint_model_are_recorded_only_where_they_have_an_effect() -> None:
    assert "examination_steps" not in configure("dla").as_dict()["learner"]
    assert configure("dla", settings={"learner.ranker": "ensemble"}).as_dict()["learner"]["examination_steps"] == 500
