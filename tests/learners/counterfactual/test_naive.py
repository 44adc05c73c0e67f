import numpy as np
import pytest

from cuolr.errors import InputError
from cuolr.learners.counterfactual.naive import Naive
from cuolr.logs.aggregate import aggregate
from cuolr.policies.network_policy import NetworkPolicy
from cuolr.training.log_form import TrainingLog
from cuolr.training.presets.configure import configure
from tests.data.small_data import assert_same_log, candidates_of, log_of, random_log
from tests.training.tasks import fit_log, task_of


def test_its_targets_are_the_clicks_as_they_are() -> None:
    log = aggregate(random_log(candidates_of(4, 2, 7), sessions=20, k=4))
    lists = Naive(Naive.Config()).weighted_lists(task_of(log))
    assert lists.targets is log.clicks
    assert (lists.query is log.query, lists.ranking is log.ranking, lists.count is log.count) == (True, True, True)


def test_it_learns_from_aggregated_lists() -> None:
    log = random_log(candidates_of(4, 2, 7), sessions=20, k=4)
    assert_same_log(TrainingLog.of(log).read_for(Naive, "naive"), aggregate(log))
    with pytest.raises(InputError, match="aggregate: naive always learns from aggregated lists"):
        TrainingLog.of(log).read_for(Naive, "naive", "no")


def test_the_learned_scores_are_the_logarithm_of_clicks() -> None:
    """At its least, softmax(s) is each document's share in the clicks of its list: here 6, 3 and 1 of 10."""
    clicks = [[1, 0, 0]] * 6 + [[0, 1, 0]] * 3 + [[0, 0, 1]]
    log = log_of(candidates_of(3), [0] * 10, [[0, 1, 2]] * 10, clicks)
    settings = {"learner.learning_rate": 0.01, "training.steps": 300, "training.patience": 0}
    config = configure("naive", settings={**settings, "training.keep": "last", "learner.hidden": [16]})
    best = fit_log(log, config, lambda _: 0.0).best
    assert best is not None
    assert isinstance(best.policy, NetworkPolicy)
    scores = np.exp(best.policy.score(log.candidates))
    assert (scores / scores.sum()).tolist() == pytest.approx([0.6, 0.3, 0.1], abs=0.01)
