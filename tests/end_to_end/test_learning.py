"""What is learned from clicks ranks better than what logged them, and better than nothing learned."""

import pytest

from cuolr.evaluation.evaluate import score_on
from tests.end_to_end.learning import best_weight, learn, untrained, world


def assert_learns(learner: str, seed: int, click_model: str, **settings: float) -> None:
    """Better on test queries than the logging policy and than the policy before training."""
    learned = learn(learner, seed, click_model, **settings).test
    logged = score_on(world(seed).test)(world(seed).logger)
    assert learned > logged, f"{learner} under {click_model}, seed {seed}: {learned:.4f} against {logged:.4f} logged"
    assert learned > untrained(learner, seed)


@pytest.mark.thorough
@pytest.mark.parametrize("click_model", ["pbm", "dcm"])
def test_learning_beats_the_logging_policy_under_two_click_models(click_model: str) -> None:
    assert_learns("sac", 1, click_model)
    assert_learns("cql", 1, click_model, conservative_weight=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("click_model", ["pbm", "cascade", "ubm", "dcm", "ccm"])
def test_learning_beats_the_logging_policy_under_every_click_model(click_model: str, seed: int) -> None:
    assert_learns("sac", seed, click_model)
    assert_learns("cql", seed, click_model, conservative_weight=best_weight())
