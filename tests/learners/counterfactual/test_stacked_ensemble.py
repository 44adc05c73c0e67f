from typing import Any

import numpy as np
import pytest

from cuolr.examination.conditional_likelihood import log_likelihood
from cuolr.learners.counterfactual.pooled_clicks import PooledClicks
from cuolr.learners.counterfactual.stacked_ensemble import EnsembleSteps, StackedEnsemble
from cuolr.learners.rankers.ensemble import EnsembleConfig
from cuolr.policies.logging_policy_model import LoggingPolicyModel
from cuolr.training.batches import WeightedLists
from tests.learners.lists import no_scaling
from tests.small_log import small_log

LOG = small_log(rows=400, queries=12)
RATES = PooledClicks.of(WeightedLists.of(LOG)).rates(np.arange(len(LOG)), no_scaling())


def new_ensemble(logging_policy: LoggingPolicyModel | None = None, **settings: Any) -> StackedEnsemble:
    small = {"hidden": (8,), "lists_per_step": 8, "min_documents_per_leaf": 3, "learning_rate": 0.01}
    config = EnsembleConfig(**{**small, **settings})
    return StackedEnsemble(RATES, config, logging_policy or LoggingPolicyModel(), 1, 1, no_scaling())


def stepped(ensemble: StackedEnsemble, steps: int) -> StackedEnsemble:
    for _ in range(steps):
        ensemble.step()
    return ensemble


def test_it_scores_as_its_policy_does() -> None:
    ensemble = stepped(new_ensemble(), 4)
    scores = ensemble.score(RATES.features)
    assert np.ptp(scores) > 0
    np.testing.assert_allclose(ensemble.policy().score_scaled(RATES.features), scores, rtol=1e-4, atol=1e-5)


def test_weights_are_computed_anew_after_a_step() -> None:
    ensemble = stepped(new_ensemble(), 2)
    before = ensemble.members()
    assert ensemble.members() == before
    ensemble.step()
    assert ensemble.members() != before


def test_it_is_validated_by_the_clicks_of_all_queries() -> None:
    """Out of fold where it was trained; clicks on held-out queries count as much."""
    held_out, ensemble = RATES.select(np.arange(5)), stepped(new_ensemble(), 4)
    none, some = (EnsembleSteps(ensemble, rates) for rates in (RATES.select(np.arange(0)), held_out))
    scores = np.zeros(held_out.where.shape)
    scores[held_out.where] = ensemble.score(held_out.features[held_out.documents[held_out.where]])
    extra = log_likelihood(scores, held_out.rewards, held_out.expected_examinations)
    clicks = [rates.rewards.sum() for rates in (RATES, held_out)]
    expected = (none.held_out_score() * clicks[0] + extra) / sum(clicks)
    assert some.held_out_score() == pytest.approx(expected, rel=1e-6)


def test_a_resumed_ensemble_ends_as_one_that_was_not_stopped() -> None:
    whole, resumed = stepped(new_ensemble(), 4), new_ensemble()
    resumed.load_state(stepped(new_ensemble(), 2).state())
    np.testing.assert_array_equal(stepped(resumed, 2).score(RATES.features), whole.score(RATES.features))


@pytest.mark.parametrize("include", [False, True])
def test_the_logging_policy_is_one_more_kind_of_member(include: bool) -> None:
    logging_policy = LoggingPolicyModel.fit(LOG, no_scaling(), 1, 3) if include else LoggingPolicyModel()
    members = stepped(new_ensemble(logging_policy), 2).members()
    assert len(members) == 9 + len(set(logging_policy.rankers))


def test_documents_with_a_higher_rate_are_scored_higher() -> None:
    """The first feature of `small_log` is what is clicked."""
    ensemble = stepped(new_ensemble(), 40)
    good, bad = np.zeros((2, 1, RATES.features.shape[1]), np.float32)
    good[0, 0], bad[0, 0] = 1.5, -1.5
    assert ensemble.score(good)[0] > ensemble.score(bad)[0]
