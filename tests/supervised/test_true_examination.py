import numpy as np
import pytest

from cuolr.clicks.click_model import CLICK_MODELS, click_model, relevance_of
from cuolr.clicks.simulate import Simulation
from cuolr.data.synthetic import generate_splits
from cuolr.policies.random_policy import RandomPolicy
from cuolr.supervised.true_examination import only_examined


@pytest.mark.parametrize("name", ["pbm", "cascade", "dcm", "ubm"])
def test_clicks_per_examination_are_the_attractiveness_of_each_grade(name: str) -> None:
    data, _, _ = generate_splits("tiny", 200, 1, 1, seed=1)
    users = click_model(name)
    log = Simulation(data, RandomPolicy(1), users, sessions=40_000, k=10, seed=1, keep_examination=True).log()
    examined = only_examined(log)
    assert (log.where & ~examined.where).any(), "some documents were not examined"
    grade = data.relevance[examined.documents]
    for each in range(data.max_grade + 1):
        clicks = examined.clicks[examined.where & (grade == each)]
        expected = users.click_if_examined(relevance_of(np.array([each]), data.max_grade))[0]
        assert clicks.mean() == pytest.approx(expected, abs=5 * clicks.std() / np.sqrt(len(clicks)) + 1e-9)


def test_nothing_is_left_out_of_sessions_of_users_who_examine_everything() -> None:
    assert "perfect" in CLICK_MODELS.names()
    data, _, _ = generate_splits("tiny", 20, 1, 1, seed=1)
    log = Simulation(data, RandomPolicy(1), click_model("perfect"), 200, 5, seed=1, keep_examination=True).log()
    np.testing.assert_array_equal(only_examined(log).ranking, log.ranking)
