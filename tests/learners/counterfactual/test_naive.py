import pytest
import torch

from cuolr.errors import InputError
from cuolr.learners.counterfactual.naive import Naive
from cuolr.learners.rankers.losses import softmax_loss
from cuolr.logs.aggregate import aggregate
from cuolr.training.training_log import TrainingLog
from tests.data.small_data import assert_same_log, candidates_of, random_log
from tests.learners.lists import build, random_batch


def test_the_loss_is_the_softmax_loss_on_clicks_weighted_by_sessions() -> None:
    learner, batch = build("naive"), random_batch(lengths=(4, 2, 3))
    assert isinstance(learner, Naive)
    losses = softmax_loss(learner.ranker(batch.features), batch.clicks, batch.where)
    expected = sum(w * loss for w, loss in zip(batch.weight.tolist(), losses.tolist(), strict=True)) / 3
    assert learner.update(batch)["ranking_loss"] == pytest.approx(expected)


def test_it_learns_from_aggregated_lists() -> None:
    log = random_log(candidates_of(4, 2, 7), sessions=20, k=4)
    assert_same_log(TrainingLog.of(log).read_for(Naive, "naive"), aggregate(log))
    with pytest.raises(InputError, match="aggregate: naive always learns from aggregated lists"):
        TrainingLog.of(log).read_for(Naive, "naive", "no")


def test_the_learned_scores_are_the_logarithm_of_clicks() -> None:
    """At its least, softmax(s) is each document's share in the clicks of its list: here 0.6, 0.3 and 0.1."""
    learner = build("naive", n_features=3, k=3, learning_rate=0.01)
    assert isinstance(learner, Naive)
    batch = random_batch(lengths=(3,), k=3, n_features=3)
    batch.features[:] = torch.eye(3)
    batch.clicks[:] = torch.tensor([[0.6, 0.3, 0.1]])
    for _ in range(300):
        learner.update(batch)
    assert learner.ranker(torch.eye(3)).softmax(dim=0).tolist() == pytest.approx([0.6, 0.3, 0.1], abs=0.01)
