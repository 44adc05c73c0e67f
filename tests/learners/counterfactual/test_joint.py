import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cuolr.clicks.pbm import EYE_TRACKING, PositionBasedModel
from cuolr.clicks.simulate import Simulation
from cuolr.learners.counterfactual.dla import DLA, inverse_ratio
from cuolr.learners.counterfactual.joint import JointLearner
from cuolr.learners.counterfactual.two_tower import TwoTower
from cuolr.learners.rankers.base_ranker import softmax_loss
from cuolr.logs.aggregate import aggregate
from cuolr.logs.log_folder import concatenate
from cuolr.policies.random_policy import UniformLogger
from cuolr.training.base_learner import LEARNERS
from cuolr.training.batches import Batches, SessionBatch, WeightedLists
from cuolr.training.presets.configure import configure
from tests.data.small_data import candidates_of, dataset_of, random_log
from tests.learners.lists import K, build, new, no_scaling, random_batch
from tests.training.tasks import task_of

JOINT = [name for name in LEARNERS.names() if issubclass(LEARNERS.get(name), JointLearner)]


def test_the_softmax_loss_is_as_worked_by_hand() -> None:
    scores = torch.tensor([[math.log(1), math.log(2), math.log(5)], [0.0, 0.0, 0.0]])
    clicks = torch.tensor([[0.0, 1.0, 0.5], [2.0, 0.0, 0.0]])
    where = torch.tensor([[True, True, True], [True, True, False]])
    expected = [-1 * math.log(2 / 8) - 0.5 * math.log(5 / 8), -2 * math.log(1 / 2)]
    assert softmax_loss(scores, clicks, where).tolist() == pytest.approx(expected)


def test_a_list_is_not_divided_by_its_own_clicks() -> None:
    scores, where = torch.randn(1, 4), torch.ones(1, 4, dtype=torch.bool)
    one, other = torch.tensor([[1.0, 0, 0, 0]]), torch.tensor([[0.0, 0, 1, 1]])
    both = softmax_loss(scores, one, where) + softmax_loss(scores, other, where)
    torch.testing.assert_close(softmax_loss(scores, one + other, where), both)


@given(st.floats(-1e30, 1e30), st.integers(0, 4))
def test_extreme_scores_and_empty_lists_leave_finite_gradients(extreme: float, length: int) -> None:
    scores = torch.tensor([[extreme, 0.0, -extreme, 1.0]], requires_grad=True)
    where = torch.arange(4)[None] < length
    loss = softmax_loss(scores, where.float(), where)
    loss.sum().backward()  # type: ignore[no-untyped-call]
    assert loss.isfinite().all()
    assert scores.grad is not None
    assert scores.grad.isfinite().all()
    assert (scores.grad[~where] == 0).all()


@pytest.mark.parametrize("name", JOINT)
def test_an_aggregated_log_gives_the_gradient_of_its_sessions(name: str) -> None:
    log = random_log(candidates_of(4, 2, 7), sessions=200, k=4)
    steps = []
    for rows in (log, aggregate(log)):
        learner = build(name, n_features=3, max_gradient_norm=None)
        batch = Batches(WeightedLists.of(rows), no_scaling(), len(rows), seed=0).at(0)
        learner.update(batch)
        # Adam's first moment after one step is a tenth of the gradient.
        steps.append(learner.state()["optimiser"]["state"])
    for parameter, moments in steps[0].items():
        # A row's weight is relative to the mean over rows, so both are means over sessions.
        torch.testing.assert_close(moments["exp_avg"], steps[1][parameter]["exp_avg"], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", JOINT)
def test_adam_keeps_its_moments_from_step_to_step(name: str) -> None:
    learner = build(name)
    for step in range(1, 4):
        learner.update(random_batch(step))
        moments = learner.state()["optimiser"]["state"].values()
        assert {float(values["step"]) for values in moments} == {float(step)}


@pytest.mark.parametrize("name", JOINT)
def test_the_ranker_has_the_papers_size(name: str) -> None:
    built = build(name, n_features=7, k=10)
    assert isinstance(built, JointLearner)
    shapes = [tuple(values.shape) for name, values in built.ranker.state_dict().items() if name.endswith("weight")]
    assert shapes == [(256, 7), (256, 256), (1, 256)]


@pytest.mark.parametrize("name", JOINT)
def test_a_document_that_is_clicked_more_is_ranked_higher(name: str) -> None:
    """Two documents that change places, of which one is clicked whenever it is shown first."""
    learner = build(name, n_features=2, k=2, learning_rate=0.01)
    batch = random_batch(lengths=(2, 2), k=2, n_features=2)
    documents = torch.eye(2)
    batch.features[:] = torch.stack([documents, documents.flip(0)])
    batch.rewards[:] = torch.tensor([[0.8, 0.1], [0.3, 0.4]])
    for _ in range(100):
        learner.update(batch)
    assert isinstance(learner, JointLearner)
    good, bad = learner.ranker(documents).tolist()
    assert good > bad


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


def built_dla(**settings: Any) -> DLA:
    learner = build("dla", **settings)
    assert isinstance(learner, DLA)
    return learner


def set_examination(learner: DLA, examination: list[float]) -> None:
    with torch.no_grad():
        learner.examination.logits.copy_(torch.tensor(examination).log())  # type: ignore[operator]


def test_each_loss_is_weighted_by_the_other_network() -> None:
    learner, batch = built_dla(), random_batch()
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
    learner, batch = built_dla(), random_batch()
    learner.losses(batch)["ranking_loss"].sum().backward()  # type: ignore[no-untyped-call]
    assert all(parameter.grad is None for parameter in learner.examination.parameters())
    learner = built_dla()
    learner.losses(batch)["examination_loss"].sum().backward()  # type: ignore[no-untyped-call]
    assert all(parameter.grad is None for parameter in learner.ranker.parameters())


def test_a_weight_beyond_the_bound_has_no_further_effect() -> None:
    def loss(last: float) -> torch.Tensor:
        learner = built_dla(max_weight=5.0)
        set_examination(learner, [1.0, 1.0, 1.0, last])
        return learner.losses(random_batch())["ranking_loss"]

    assert not torch.equal(loss(1 / 3), loss(1 / 4))
    assert torch.equal(loss(1 / 5.001), loss(1 / 1_000))
    assert torch.equal(loss(1 / 5.001), loss(0.0))


def test_the_bound_holds_for_the_weights_of_examination_too() -> None:
    batch = random_batch()

    def loss(scale: float) -> torch.Tensor:
        learner = built_dla(max_weight=1.0)
        learner.ranker.output.weight.data *= scale
        learner.ranker.output.bias.data *= scale
        return learner.losses(replace(batch, rewards=torch.ones_like(batch.rewards)))["examination_loss"]

    # With a bound of 1 only documents that are better than the first have a weight below it.
    scores = built_dla().ranker(batch.features).detach()
    expected = inverse_ratio(scores, 1.0)
    assert (expected <= 1).all()
    torch.testing.assert_close(loss(1.0), expected.sum(dim=1) * math.log(K))


def clicks_of_a_position_based_model(sessions: int = 400) -> SessionBatch:
    """Lists in random order, with the expected clicks of users who look at positions as in the eye-tracking study."""
    batch = random_batch(lengths=(K,) * sessions)
    attractiveness = (2 * batch.features[:, :, 0]).sigmoid()
    examination = torch.tensor(EYE_TRACKING[:K])
    return replace(batch, rewards=attractiveness * examination, weight=torch.ones(sessions))


@pytest.mark.thorough
@pytest.mark.parametrize("model", ["free", "network"])
def test_examination_is_learned_from_clicks_alone(model: str) -> None:
    learner = built_dla(examination_model=model, examination_learning_rate=0.02, learning_rate=0.003, hidden=[32])
    batch = clicks_of_a_position_based_model()
    for _ in range(250):
        learner.update(batch)
    learned = (learner.examination() - learner.examination()[0]).exp().tolist()
    assert learned == pytest.approx([value / EYE_TRACKING[0] for value in EYE_TRACKING[:K]], rel=0.05)


@pytest.mark.thorough
def test_held_out_clicks_are_explained_best_by_the_true_examination() -> None:
    learner, batch = built_dla(), clicks_of_a_position_based_model()
    for _ in range(100):
        learner.update(batch)
    values = []
    for examination in ([0.68, 0.61, 0.48, 0.34], [1.0, 1.0, 1.0, 1.0], [0.34, 0.48, 0.61, 0.68]):
        set_examination(learner, examination)
        values.append(float(learner.held_out_scores(batch).mean()))
    assert values == sorted(values, reverse=True)


def test_shorter_lists_than_the_longest_are_no_problem() -> None:
    batch = random_batch(lengths=(2, 1), k=2)
    assert built_dla().update(batch).keys() == {"loss", "ranking_loss", "examination_loss"}


@pytest.mark.thorough
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
