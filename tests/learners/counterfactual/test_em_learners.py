"""Learners that regress relevance on features."""

from typing import Any

import numpy as np
import pytest

from cuolr.clicks.pbm import PositionBasedModel
from cuolr.clicks.simulate import Simulation
from cuolr.clicks.trust import TrustBiasModel
from cuolr.errors import InputError
from cuolr.examination import regression_based_em
from cuolr.examination.propensities import Estimate, Propensities
from cuolr.examination.trust_bias_em import TrustBias
from cuolr.learners.counterfactual import affine, regression_em
from cuolr.learners.counterfactual.affine import Affine
from cuolr.learners.counterfactual.doubly_robust import DoublyRobust, corrected_rates
from cuolr.learners.counterfactual.regression_em import RegressionEM
from cuolr.logs.aggregate import aggregate
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.log_folder import concatenate
from cuolr.logs.scaled_documents import ScaledDocuments
from cuolr.policies.random_policy import UniformLogger
from cuolr.training.batches import WeightedLists
from cuolr.types import Doubles, Ints
from tests.data.small_data import candidates_of, dataset_of, log_of
from tests.small_log import small_log
from tests.training.tasks import task_of


def test_clicks_are_divided_by_the_examination_of_their_positions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regression_em, "fit_examination", lambda *_: np.array([1.0, 0.5, 0.01]))
    log = aggregate(log_of(candidates_of(3), [0, 0], [[0, 1, 2], [1, 0, 2]], [[1, 0, 0], [0, 0, 1]]))
    lists, pooled = RegressionEM(RegressionEM.Config(max_weight=10.0)).corrected_clicks(task_of(log))
    np.testing.assert_allclose(pooled.exposure, [[1, 0.5, 0.1], [1, 0.5, 0.1]])
    # Document 0: one click in 1 + 0.5 examinations; 1: none; 2: one click in 0.1 + 0.1, which is at most 1.
    np.testing.assert_allclose(lists.targets, [[1 / 1.5, 0, 1], [0, 1 / 1.5, 1]])


def test_it_learns_from_the_training_queries_with_its_own_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = []

    def fit_examination(log: ClickLog, _: ScaledDocuments, rows: Ints, em: regression_based_em.EmSettings) -> Doubles:
        taken.append((sorted(set(log.query[rows].tolist())), em))
        return np.ones(log.k)

    monkeypatch.setattr(regression_em, "fit_examination", fit_examination)
    config = RegressionEM.Config(em_rounds=7, em_steps=2, em_learning_rate=0.1)
    RegressionEM(config).corrected_clicks(task_of(aggregate(small_log()), held_out=np.array([0, 3]), seed=4))
    assert taken == [([1, 2, 4, 5], regression_based_em.EmSettings(7, 2, 0.1, 4))]


def test_clicks_are_corrected_by_intercept_and_slope(monkeypatch: pytest.MonkeyPatch) -> None:
    bias = TrustBias(np.array([1.0, 0.5]), np.array([0.25, 0.0]))
    monkeypatch.setattr(affine, "fit_trust_bias", lambda *_: bias)
    rankings = [[0, 1], [0, 1], [1, 0], [0, 2]]
    log = aggregate(log_of(candidates_of(3), [0] * 4, rankings, [[1, 1], [1, 0], [0, 0], [0, 0]]))
    lists, _ = Affine(Affine.Config()).corrected_clicks(task_of(log))
    # Document 0 has clicks 1, 1, 0 at position 1 and 0 at position 2; document 1 has 1, 0 at position 2 and 0 at 1.
    rate = {0: (3 * (2 / 3 - 0.25) + 0) / (3 * 1 + 0.5), 1: (1 + (0 - 0.25)) / (2 * 0.5 + 1), 2: 0.0}
    expected = [[rate[document] for document in row] for row in lists.ranking.tolist()]
    np.testing.assert_allclose(lists.targets, expected)


def test_a_rate_below_0_is_0_and_a_slope_has_its_least(monkeypatch: pytest.MonkeyPatch) -> None:
    bias = TrustBias(np.array([1.0, 0.001]), np.array([0.25, 0.0]))
    monkeypatch.setattr(affine, "fit_trust_bias", lambda *_: bias)
    log = aggregate(log_of(candidates_of(2), [0] * 2, [[0, 1]] * 2, [[0, 0], [0, 1]]))
    lists, pooled = Affine(Affine.Config(max_weight=10.0)).corrected_clicks(task_of(log))
    np.testing.assert_allclose(pooled.exposure, [[2.0, 0.2]])
    np.testing.assert_allclose(lists.targets, [[0.0, 1.0]])


def test_with_the_true_bias_rates_are_those_of_relevance(monkeypatch: pytest.MonkeyPatch) -> None:
    model, dataset = TrustBiasModel(), dataset_of(6, max_grade=2)
    log = aggregate(concatenate(Simulation(dataset, UniformLogger(), model, 100_000, k=4).blocks(), 100_000))
    theta, relevant, irrelevant = (
        np.array(values[:4]) for values in (model.examination, model.click_relevant, model.click_irrelevant)
    )
    slope = theta * (relevant - irrelevant)
    bias = TrustBias(slope / slope[0], theta * irrelevant)
    monkeypatch.setattr(affine, "fit_trust_bias", lambda *_: bias)
    lists, _ = Affine(Affine.Config()).corrected_clicks(task_of(log))
    relevance = (2.0**dataset.relevance - 1) / (2**2 - 1)
    np.testing.assert_allclose(lists.targets, slope[0] * relevance[lists.ranking], atol=0.02)
    # Inverse propensity weighting alone cannot do it: what is not relevant has clicks at the top.
    assert log.clicks[:, 0][relevance[log.ranking[:, 0]] == 0].mean() > 0.3


HALF = Propensities(Estimate((1.0, 0.5)))
# Query 0: documents 0 and 1 are shown in four sessions, 2 never. Query 1 is not in the log.
LOG = log_of(candidates_of(3, 2), [0] * 4, [[0, 1]] * 4, [[1, 0], [1, 1], [0, 0], [0, 0]])


def lists_of(log: ClickLog, propensities: Propensities, held_out: Ints | None = None, **settings: Any) -> WeightedLists:
    learner = DoublyRobust(DoublyRobust.Config(**settings))
    return learner.corrected_clicks(task_of(log, propensities, held_out=held_out))[0]


@pytest.fixture
def predicts_a_fifth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DoublyRobust, "_predicted", lambda _, task, *__: np.full(task.log.candidates.n_documents, 0.2))


@pytest.mark.usefixtures("predicts_a_fifth")
@pytest.mark.parametrize(
    ("min_exposure", "second"),
    [(0.4, 0.25 / 0.5), (0.8, 0.2 + (0.25 - 0.5 * 0.2) / 0.8)],
)
def test_all_candidates_have_targets_worked_by_hand(min_exposure: float, second: float) -> None:
    lists = lists_of(aggregate(LOG), HALF, min_exposure=min_exposure)
    assert lists.query.tolist() == [0]
    assert lists.count.tolist() == [4]
    assert lists.ranking.tolist() == [[0, 1, 2]]
    # The first has 2 clicks in 4 examinations; the last is what the regression says.
    np.testing.assert_allclose(lists.targets, [[0.5, second, 0.2]])


@pytest.mark.usefixtures("predicts_a_fifth")
def test_the_least_exposure_falls_with_the_number_of_sessions() -> None:
    lists = lists_of(aggregate(LOG), HALF)  # 10 / √4 is above 1, so it is 1
    np.testing.assert_allclose(lists.targets, [[0.5, 0.2 + (0.25 - 0.5 * 0.2) / 1, 0.2]])


def test_with_a_correct_regression_a_limit_on_exposure_adds_no_bias() -> None:
    """Inverse propensity weighting alone is biased by the limit."""
    relevance, examination = np.array([0.6, 0.3, 0.1]), np.array([0.9, 0.2, 0.05])
    clicks = relevance * examination
    np.testing.assert_allclose(corrected_rates(relevance, clicks, examination, 0.5), relevance)
    assert (clicks / np.maximum(examination, 0.5) < 0.5 * relevance).tolist() == [False, True, True]


def test_with_correct_propensities_a_wrong_regression_adds_no_bias() -> None:
    relevance, examination = np.array([0.6, 0.3, 0.1]), np.array([0.9, 0.2, 0.05])
    wrong = np.array([0.0, 1.0, 0.5])
    np.testing.assert_allclose(corrected_rates(wrong, relevance * examination, examination, 0.01), relevance)


def test_the_rates_of_a_stochastic_log_are_in_the_ratio_of_attractiveness() -> None:
    dataset, model = dataset_of(6, max_grade=2), PositionBasedModel()
    log = aggregate(concatenate(Simulation(dataset, UniformLogger(), model, 100_000, k=3).blocks(), 100_000))
    lists = lists_of(log, Propensities(Estimate(model.examination)))
    attractiveness = 0.1 + 0.9 * (2.0**dataset.relevance - 1) / (2**2 - 1)
    np.testing.assert_allclose(lists.targets[0], model.examination[0] * attractiveness, rtol=0.06, atol=0.005)


def test_documents_that_were_never_shown_are_predicted_from_features() -> None:
    """Clicked if, and only if, the first feature is high; half of the documents are shown."""
    candidates = candidates_of(*[8] * 30)
    shown = np.tile([0, 1, 2, 3], (30, 1))
    good = candidates.features[:, 0] > np.median(candidates.features[:, 0])
    clicks = good[candidates.offsets[:-1, None] + shown].astype(int)
    log = log_of(candidates, list(range(30)), shown.tolist(), clicks.tolist())
    lists = lists_of(log, Propensities(Estimate((1.0,) * 4)), regression_steps=400, regression_learning_rate=0.01)
    unshown = lists.targets[:, 4:].ravel()
    assert np.corrcoef(unshown, good.reshape(30, 8)[:, 4:].ravel())[0, 1] > 0.7


def test_the_regression_does_not_learn_from_held_out_queries() -> None:
    candidates = candidates_of(*[4] * 6)
    shown, rng = np.tile([0, 1, 2], (6, 1)).tolist(), np.random.default_rng(0)
    clicks = rng.integers(0, 2, (6, 3))
    changed = clicks.copy()
    changed[2] = 1 - changed[2]

    def unshown(values: Any) -> Doubles:
        log = log_of(candidates, list(range(6)), shown, values.tolist())
        return lists_of(log, Propensities(Estimate((1.0,) * 3)), held_out=np.array([2])).targets[:, 3]

    np.testing.assert_array_equal(unshown(clicks), unshown(changed))


def test_it_says_how_to_get_propensities() -> None:
    with pytest.raises(InputError, match="doubly-robust needs the examination probability of each position"):
        DoublyRobust(DoublyRobust.Config()).corrected_clicks(task_of(aggregate(LOG)))
