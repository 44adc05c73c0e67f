import numpy as np
import pytest

from cuolr.clicks.click_model import click_model
from cuolr.clicks.simulate import Simulation, simulate
from cuolr.clicks.simulated_context import SimulatedContext
from cuolr.data.synthetic import generate
from cuolr.examination.curve_intervals import examination_curves
from cuolr.examination.from_clicks import ExaminationModel, logging_scores_of
from cuolr.logs.counts import ClickCounts
from cuolr.policies.plackett_luce import StochasticLogger
from cuolr.supervised.oracle import LambdaMartSettings, fit_lambdamart
from cuolr.supervised.ranksvm import fit_ranksvm
from cuolr.types import Doubles
from tests.small_log import small_log

TRUTH = np.array(click_model("pbm").examination) / click_model("pbm").examination[0]  # type: ignore[attr-defined]


def simulated_counts(
    queries: int, sessions: int, seed: int, temperature: float = 0.5, users: str = "pbm"
) -> ClickCounts:
    """Lists that are drawn anew in each session, or, without temperature, one list for each query."""
    data = generate("tiny", queries, seed=seed + 1)
    ranker = fit_ranksvm(data, 0.05, 1)
    logger = StochasticLogger(ranker, temperature) if temperature else ranker
    return ClickCounts.of(simulate(data, logger, click_model(users), sessions, seed=seed))


@pytest.mark.parametrize("stochastic", [False, True])
def test_the_curve_is_that_of_the_model_without_its_cap(stochastic: bool) -> None:
    """From features, to the digit; from documents, a model uses impressions with a click above as well."""
    counts = simulated_counts(60, 6_000, 1, 0.5 if stochastic else 0.0)
    scores = logging_scores_of(counts)
    found = examination_curves(counts, scores)
    assert found.from_documents is stochastic
    model = ExaminationModel.from_counts(counts, scores, cap_at_first_position=False)
    values = [np.nan if place is None else place.value for place in found.pooled.positions]
    np.testing.assert_allclose(values, model.table[:, 0], rtol=0.05 if stochastic else 2e-3)
    assert found.logging_policy_weight is not None
    assert found.logging_policy_weight.value == pytest.approx(model.slope, abs=2e-3)


def test_a_score_that_is_clicked_less_has_a_negative_weight_but_the_curve_is_that_of_the_model() -> None:
    counts = simulated_counts(60, 6_000, 1, 0.0)
    scores = -logging_scores_of(counts)
    found = examination_curves(counts, scores)
    assert found.logging_policy_weight is not None
    assert found.logging_policy_weight.value < -0.1
    model = ExaminationModel.from_counts(counts, scores, cap_at_first_position=False)
    assert model.slope == 0
    values = [np.nan if place is None else place.value for place in found.pooled.positions]
    np.testing.assert_allclose(values, model.table[:, 0], rtol=2e-3)


def test_position_1_is_the_unit_and_has_no_error() -> None:
    first = examination_curves(simulated_counts(60, 3_000, 1), np.zeros((3_000, 10))).pooled.positions[0]
    assert first is not None
    assert (first.value, first.low, first.high) == (1, 1, 1)


def test_intervals_are_narrower_with_more_sessions() -> None:
    widths = []
    for sessions in (3_000, 12_000):
        counts = simulated_counts(60, sessions, 1)
        places = examination_curves(counts, np.zeros(counts.lists.where.shape)).pooled.positions[1:6]
        widths.append(np.mean([np.log(place.high / place.low) for place in places if place is not None]))
    assert widths[0] / widths[1] == pytest.approx(2, rel=0.3)


def test_each_context_has_a_curve_of_its_own() -> None:
    data = generate("tiny", 100, seed=1)
    contexts = (SimulatedContext("device", ("desktop", "mobile"), (0.6, 0.4), (1.0, 2.0)),)
    logger = StochasticLogger(fit_ranksvm(data, 0.05, 1), 0.5)
    log = Simulation(data, logger, click_model("pbm"), 20_000, contexts=contexts).log()
    counts = ClickCounts.of(log)
    found = examination_curves(counts, np.zeros(counts.lists.where.shape))
    assert [curve.level for curve in found.by_context] == ["desktop", "mobile"]
    assert sum(curve.sessions for curve in found.by_context) == found.pooled.sessions == 20_000
    for curve, severity in zip(found.by_context, (1, 2), strict=True):
        for k in (2, 4):
            place = curve.positions[k]
            assert place is not None
            assert np.log(place.value) == pytest.approx(
                severity * np.log(TRUTH[k]), abs=2 * np.log(place.high / place.value)
            )
    desktop, mobile = (curve.positions[4] for curve in found.by_context)
    assert desktop is not None
    assert mobile is not None
    assert mobile.high < desktop.low


def test_a_log_without_features_has_no_logging_policy_weight() -> None:
    counts = simulated_counts(60, 3_000, 1)
    assert examination_curves(counts, np.zeros(counts.lists.where.shape)).logging_policy_weight is None


def test_without_clicks_nothing_is_known() -> None:
    log = small_log(rows=50)
    log.clicks[:] = 0
    counts = ClickCounts.of(log)
    found = examination_curves(counts, np.zeros(counts.lists.where.shape))
    assert found.pooled.positions[1:] == (None,) * (counts.lists.k - 1)


@pytest.mark.thorough
def test_a_logging_policy_trained_on_the_same_queries_has_no_positive_weight() -> None:
    """Users examine everything, but the curve falls: what is wrong with features alone."""
    data = generate("tiny", 100, seed=1)
    settings = LambdaMartSettings(trees=100, leaves=31, learning_rate=0.1, min_documents_per_leaf=5)
    trained, independent = fit_lambdamart(data, settings=settings), fit_ranksvm(data, 0.05, 1)
    weights, last = [], []
    for policy in (trained, independent):
        counts = ClickCounts.of(simulate(data, policy, click_model("perfect"), 20_000, seed=1))
        found = examination_curves(counts, logging_scores_of(counts))
        assert found.logging_policy_weight is not None
        assert found.pooled.positions[9] is not None
        weights.append(found.logging_policy_weight)
        last.append(found.pooled.positions[9].value)
    assert weights[0].low < 0 < weights[1].low
    assert last[0] < 0.4 < 0.6 < last[1]


@pytest.mark.thorough
@pytest.mark.parametrize(("users", "truth"), [("pbm", TRUTH), ("dcm", np.ones(10))])
def test_intervals_contain_the_truth_as_often_as_they_say(users: str, truth: Doubles) -> None:
    """95 % intervals; positions of one log are correlated, hence the tolerance. Under DCM all go on until a click."""
    hits = []
    for seed in range(30):
        counts = simulated_counts(60, 4_000, seed, users=users)
        places = examination_curves(counts, np.zeros(counts.lists.where.shape)).pooled.positions
        hits += [place.low <= truth[k] <= place.high for k, place in enumerate(places) if k and place is not None]
    assert 0.9 <= np.mean(hits) <= 0.99
