import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cuolr.learners.counterfactual.joint import JointLearner
from cuolr.learners.rankers.base_ranker import softmax_loss
from cuolr.logs.aggregate import aggregate
from cuolr.training.base_learner import LEARNERS
from cuolr.training.batches import Batches, WeightedLists
from tests.data.small_data import candidates_of, random_log
from tests.learners.lists import build, no_scaling, random_batch

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
