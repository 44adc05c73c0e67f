"""The parts of `planned`; `test_conformance` has what every learner does."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from cuolr import Ranker, click_model, fit_ranksvm, generate_splits, simulate
from cuolr.clicks.click_model import relevance_of
from cuolr.learners.factored.click_rates import ClickRates
from cuolr.learners.planned import calibrated
from cuolr.policies.plackett_luce import StochasticLogger
from cuolr.policies.planned_policy import PlannedPolicy
from cuolr.policies.policy import RankingPolicy
from cuolr.types import Doubles, RankingDataset

RATES = ClickRates(
    features=np.zeros((4, 1), np.float32),
    query=np.array([0, 1]),
    sessions=np.array([10, 10]),
    documents=np.array([[0, 1], [2, 3]]),
    rewards=np.array([[2.0, 6.0], [2.0, 0.0]]),
    expected_examinations=np.array([[1e6, 1e6], [1e6, 0.0]]),
    rate=np.array([[0.2, 0.6], [0.2, 0.0]]),
)


def test_attractiveness_is_calibrated_to_the_click_rates() -> None:
    """Two levels of the score, two rates: both are met; the last place has no document."""
    intercept, slope = calibrated(np.array([1.0, 3.0, 1.0]), RATES)
    np.testing.assert_allclose(expit(intercept + slope * np.array([1.0, 3.0])), [0.2, 0.6], rtol=1e-4)


def test_scores_against_the_clicks_make_all_documents_alike() -> None:
    intercept, slope = calibrated(np.array([3.0, 1.0, 3.0]), RATES)
    assert slope == 0
    assert 0 < expit(intercept) < 1
    nothing = replace(RATES, expected_examinations=np.zeros((2, 2)))
    assert calibrated(np.array([3.0, 1.0, 3.0]), nothing) == (0.0, 0.0)


def expected_clicks(model: str, policy: RankingPolicy, data: RankingDataset) -> Doubles:
    ranking = policy.rank(data.candidates, 6)
    where = ranking >= 0
    rows = data.candidates.offsets[:-1, None] + np.maximum(ranking, 0)
    relevance = relevance_of(data.relevance[rows], data.max_grade)
    clicks: Doubles = click_model(model).click_probability(relevance, where).sum(axis=1)
    return clicks


@pytest.mark.thorough
@pytest.mark.parametrize(("model", "gains"), [("ubm", True), ("sdbn", True), ("pbm", False)])
def test_planned_lists_are_clicked_more_where_sorting_is_not_optimal(model: str, gains: bool) -> None:
    train, vali, _ = generate_splits("tiny", 200, 200, 5, seed=4)
    weak = fit_ranksvm(train, 0.02, 1)
    logger = StochasticLogger(weak, float(np.std(weak.score(train.candidates))))
    log = simulate(train, logger, click_model(model), sessions=20_000, k=6, seed=2)
    planned = Ranker("planned", steps=20).fit(log).policy_
    assert isinstance(planned, PlannedPolicy)
    ours, sorted_ = (expected_clicks(model, policy, vali) for policy in (planned, planned.scorer))
    difference = ours - sorted_
    error = float(difference.std()) / np.sqrt(len(difference))
    if gains:
        assert difference.mean() > 2 * error
    else:
        assert abs(difference.mean()) < 0.005 * sorted_.mean()
