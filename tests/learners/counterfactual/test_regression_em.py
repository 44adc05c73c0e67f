import numpy as np
import pytest

from cuolr.examination import regression_based_em
from cuolr.learners.counterfactual import regression_em
from cuolr.learners.counterfactual.regression_em import RegressionEM
from cuolr.logs.aggregate import aggregate
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.scaled_documents import ScaledDocuments
from cuolr.types import Doubles, Ints
from tests.data.small_data import candidates_of, log_of
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
