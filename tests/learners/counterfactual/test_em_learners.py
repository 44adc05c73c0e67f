import numpy as np
import pytest

from cuolr.clicks.simulate import Simulation
from cuolr.clicks.trust import TrustBiasModel
from cuolr.examination import regression_based_em
from cuolr.examination.trust_bias_em import TrustBias
from cuolr.learners.counterfactual import affine, regression_em
from cuolr.learners.counterfactual.affine import Affine
from cuolr.learners.counterfactual.regression_em import RegressionEM
from cuolr.logs.aggregate import aggregate
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.log_folder import concatenate
from cuolr.logs.scaled_documents import ScaledDocuments
from cuolr.policies.random_policy import UniformLogger
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
