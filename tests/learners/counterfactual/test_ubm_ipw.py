import numpy as np
import pytest

from cuolr.clicks.cascade import CascadeModel
from cuolr.clicks.click_model import ClickModel
from cuolr.clicks.pbm import PositionBasedModel
from cuolr.clicks.simulate import Simulation
from cuolr.clicks.ubm import UserBrowsingModel
from cuolr.errors import InputError
from cuolr.examination.from_clicks import ExaminationModel
from cuolr.learners.counterfactual.ubm_ipw import UbmIpw
from cuolr.logs.aggregate import aggregate
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.log_folder import concatenate
from cuolr.policies.random_policy import UniformLogger
from cuolr.training.presets.configure import configure
from tests.data.small_data import candidates_of, dataset_of, log_of
from tests.small_log import small_log
from tests.training.tasks import fit_log, task_of

DATASET = dataset_of(*[6] * 8, max_grade=2)
ATTRACTIVENESS = 0.1 + 0.9 * (2.0**DATASET.relevance - 1) / (2**2 - 1)


def simulated(model: ClickModel, sessions: int = 100_000) -> ClickLog:
    return concatenate(Simulation(DATASET, UniformLogger(), model, sessions, k=4).blocks(), sessions)


@pytest.mark.parametrize(
    "model", [PositionBasedModel(), UserBrowsingModel(), CascadeModel()], ids=lambda m: type(m).__name__
)
def test_the_rates_of_a_stochastic_log_are_in_the_ratio_of_attractiveness(model: ClickModel) -> None:
    log = simulated(model)
    lists, pooled = UbmIpw(UbmIpw.Config()).corrected_clicks(task_of(log))
    documents = DATASET.candidates.offsets[lists.query, None] + lists.ranking
    rate = np.zeros(len(ATTRACTIVENESS))
    rate[documents] = lists.targets
    scale = rate.sum() / ATTRACTIVENESS.sum()
    np.testing.assert_allclose(rate, scale * ATTRACTIVENESS, rtol=0.1, atol=0.02)
    # Clicks as they are say another thing, at each position.
    naive = aggregate(log)
    assert naive.clicks[:, 3].mean() < 0.8 * naive.clicks[:, 0].mean()
    np.testing.assert_allclose(pooled.clicks.sum(), log.clicks.sum())


def test_clicks_are_divided_by_the_examinations_of_all_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two sessions of one list: the second position is examined with 0.5, and with 0.2 below a click."""
    table = np.array([[1.0, np.nan, np.nan], [0.5, 0.2, np.nan]])
    monkeypatch.setattr(ExaminationModel, "from_counts", lambda *_, **__: ExaminationModel(table))
    log = log_of(candidates_of(2), [0, 0], [[0, 1], [0, 1]], [[0, 1], [1, 0]])
    lists, pooled = UbmIpw(UbmIpw.Config()).corrected_clicks(task_of(log))
    np.testing.assert_allclose(pooled.clicks, [[1.0, 1.0]])
    np.testing.assert_allclose(pooled.exposure, [[2.0, 0.5 + 0.2]])
    np.testing.assert_allclose(lists.targets, [[1 / 2, 1.0]])  # 1 / 0.7 is above 1


def test_the_weight_of_a_click_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    table = np.array([[1.0, np.nan, np.nan], [0.001, 0.0, np.nan]])
    monkeypatch.setattr(ExaminationModel, "from_counts", lambda *_, **__: ExaminationModel(table))
    log = log_of(candidates_of(2), [0] * 4, [[0, 1]] * 4, [[0, 1], [1, 0], [0, 0], [0, 0]])
    _, pooled = UbmIpw(UbmIpw.Config(max_weight=8.0)).corrected_clicks(task_of(log))
    np.testing.assert_allclose(pooled.exposure, [[4.0, 4 / 8]])


def test_examination_is_not_estimated_from_held_out_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[list[int]] = []
    original = ExaminationModel.from_counts

    def from_counts(counts: object, scores: object, lists: object, **options: object) -> ExaminationModel:
        taken.append(sorted(set(counts.lists.query[lists].tolist())))  # type: ignore[attr-defined]
        return original(counts, scores, lists, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(ExaminationModel, "from_counts", from_counts)
    log = small_log(rows=300, queries=12)
    UbmIpw(UbmIpw.Config()).corrected_clicks(task_of(log, held_out=np.array([0, 5])))
    assert taken == [[1, 2, 3, 4, 6, 7, 8, 9, 10, 11]]


def test_an_aggregated_log_is_refused() -> None:
    with pytest.raises(InputError, match="ubm-ipw needs the clicks of each session"):
        fit_log(aggregate(small_log()), configure("ubm-ipw"))
