from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cuolr.clicks.cascade import CascadeModel
from cuolr.clicks.click_model import ClickModel
from cuolr.clicks.pbm import PositionBasedModel
from cuolr.clicks.simulate import Simulation, simulate
from cuolr.clicks.ubm import UserBrowsingModel
from cuolr.errors import InputError
from cuolr.examination.from_clicks import ExaminationModel
from cuolr.examination.propensities import Estimate, Propensities
from cuolr.learners.counterfactual.ipw import IPW
from cuolr.learners.counterfactual.ubm_ipw import UbmIpw
from cuolr.logs.aggregate import aggregate
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.log_folder import concatenate
from cuolr.policies.random_policy import RandomPolicy, UniformLogger
from cuolr.training.batches import WeightedLists
from cuolr.training.log_form import TrainingLog
from cuolr.training.presets.configure import configure
from tests.data.small_data import assert_same_log, candidates_of, dataset_of, full_log, log_of, random_log
from tests.small_log import small_log
from tests.training.tasks import fit_log, task_of


@pytest.fixture
def propensities() -> Propensities:
    """Each of four positions is examined half as often as the one above; not relative to the first."""
    return examined(0.8, 0.4, 0.2, 0.1)


def examined(*values: float | None) -> Propensities:
    return Propensities(Estimate(values))


def prepare(log: ClickLog, propensities: Propensities | None = None, **settings: Any) -> WeightedLists:
    """The lists of a log with weighted clicks."""
    learner = IPW(IPW.Config(**settings))
    return learner.weighted_lists(task_of(TrainingLog.of(log).read_for(IPW, "ipw"), propensities))


def as_log(lists: WeightedLists, log: ClickLog) -> ClickLog:
    """The lists as a log, with the other columns of an aggregated one."""
    return replace(
        log, query=lists.query.astype(np.int32), ranking=lists.ranking, clicks=lists.targets, count=lists.count
    )


def test_a_click_is_weighted_by_how_seldom_its_position_is_looked_at(propensities: Propensities) -> None:
    log = random_log(candidates_of(4, 2, 7), sessions=60, k=4)
    prepared = prepare(log, propensities=propensities)
    expected = aggregate(log)
    np.testing.assert_array_equal(prepared.targets, expected.clicks * [1, 2, 4, 8])
    assert_same_log(replace(as_log(prepared, expected), clicks=expected.clicks), expected)


def test_weighted_rewards_are_those_of_examined_documents(propensities: Propensities) -> None:
    """Under PBM a click has probability θ_k·α, and its mean reward is v: the mean target is α·v at every position."""
    log = aggregate(random_log(candidates_of(4, 2, 7), sessions=60, k=4))
    rate = np.random.default_rng(0).random((2, log.candidates.n_documents))[:, log.documents] * log.where
    examination = 1 / np.array([1, 2, 4, 8])
    expected = replace(log, clicks=examination * rate[0], reward=examination * rate[0] * rate[1])
    np.testing.assert_allclose(prepare(expected, propensities).targets, rate[0] * rate[1])


def test_examination_in_the_log_is_averaged_by_context() -> None:
    log = log_of(candidates_of(2), [0, 0, 0, 0], [[0, 1]] * 4, [[1, 1]] * 4)
    log = replace(
        log,
        examination=np.array([[1, 1], [1, 1], [1, 1], [1, 0]], np.uint8),
        context={"device": np.array(["desktop", "desktop", "mobile", "mobile"])},
    )
    prepared = prepare(log)
    assert prepared.targets.tolist() == [[1, 1], [1, 1 / (1 / 2)]]  # desktop, mobile
    assert prepare(replace(log, context={})).targets.tolist() == [[1, 1 / (3 / 4)]]


def test_an_aggregated_log_does_as_well(propensities: Propensities) -> None:
    log = random_log(candidates_of(4, 2, 7), sessions=60, k=4)
    lists = aggregate(log)
    one, other = (as_log(prepare(each, propensities), lists) for each in (lists, log))
    assert_same_log(one, other)


@pytest.mark.parametrize("max_weight", [1, 3, 5])
def test_no_weight_is_larger_than_the_bound(propensities: Propensities, max_weight: float) -> None:
    log = aggregate(random_log(candidates_of(4, 2, 7), sessions=60, k=4))
    weighted = prepare(log, propensities=propensities, max_weight=max_weight)
    np.testing.assert_allclose(weighted.targets, log.clicks * np.minimum([1, 2, 4, 8], max_weight))


def test_a_position_that_is_never_examined_has_the_largest_weight() -> None:
    log = log_of(candidates_of(2), [0], [[0, 1]], [[1, 1]])
    assert prepare(log, examined(1, 0), max_weight=7).targets.tolist() == [[1, 7]]


def test_examination_in_the_log_is_used_where_there_is_no_file() -> None:
    clicks = [[1, 0], [1, 1], [0, 0], [0, 0]]
    log = log_of(candidates_of(2, 1), [0, 0, 0, 1], [[0, 1], [1, 0], [0, 1], [0, -1]], clicks)
    log = replace(log, examination=np.array([[1, 0], [1, 1], [1, 0], [1, 0]], np.uint8))
    # All look at position 1; of the three who are shown something at position 2, one looks.
    expected = aggregate(log).clicks * [1, 3]
    np.testing.assert_allclose(prepare(log).targets, expected)
    np.testing.assert_allclose(prepare(aggregate(log)).targets, expected)


def test_a_log_in_which_nobody_looks_at_the_first_position_is_refused() -> None:
    log = replace(random_log(candidates_of(4), sessions=5, k=4), examination=np.zeros((5, 4), np.uint8))
    with pytest.raises(InputError, match="examination of position 1 is 0; it must be above 0"):
        prepare(log)


def test_logging_propensity_is_not_taken_for_examination(propensities: Propensities) -> None:
    log = replace(full_log(), page_position=None)
    assert log.logging_propensity is not None
    without = replace(log, logging_propensity=None, examination=None)
    with pytest.raises(InputError):
        prepare(replace(log, examination=None))
    weighted = prepare(log, propensities=propensities)
    plain = prepare(without, propensities=propensities)
    assert (weighted.targets * weighted.count[:, None]).sum(axis=0) == pytest.approx(
        (plain.targets * plain.count[:, None]).sum(axis=0)
    )


def test_without_a_file_and_without_examination_it_says_how_to_get_one() -> None:
    with pytest.raises(InputError) as raised:
        prepare(random_log(candidates_of(4), sessions=5, k=4))
    (problem,) = raised.value.problems
    assert "give propensities" in problem
    assert "`cuolr propensity`" in problem


@pytest.mark.parametrize(
    ("propensities", "problem"),
    [
        (Propensities(continuation={"given": Estimate((0.5, 0.5))}), "ipw needs 'examination', found none"),
        (examined(1, 0.5), "examination is needed for 4 positions, but unknown for position 3, 4"),
        (examined(1, 0.5, None, 0.1), "unknown for position 3"),
        (examined(None, 0.5, 0.2, 0.1), "unknown for position 1"),
        (examined(0, 0.5, 0.2, 0.1), "examination of position 1 is 0; it must be above 0"),
    ],
)
def test_propensities_that_do_not_say_enough_are_refused(propensities: Propensities, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        prepare(random_log(candidates_of(4), sessions=5, k=4), propensities)


def test_the_policy_aware_weight_is_one_over_the_mean_examination_of_the_document(propensities: Propensities) -> None:
    # Document 0 is shown at position 1 twice and at position 2 once; 1 the other way round; 2 once, at position 2.
    rankings = [[0, 1], [0, 1], [1, 0], [0, 2]]
    log = log_of(candidates_of(3), [0] * 4, rankings, [[1, 1]] * 4)
    weighted = prepare(log, propensities=propensities, policy_aware=True)
    mean = {0: (3 * 1 + 1 * 0.5) / 4, 1: (1 * 1 + 2 * 0.5) / 4, 2: 1 * 0.5 / 4}
    for ranking, clicks in zip(weighted.ranking.tolist(), weighted.targets.tolist(), strict=True):
        assert clicks == pytest.approx([1 / mean[slot] for slot in ranking])


def test_policy_aware_weights_are_those_of_the_positions_where_lists_never_change(propensities: Propensities) -> None:
    log = simulate(dataset_of(6, 3), RandomPolicy(), PositionBasedModel(), 100, k=4)
    plain, aware = (prepare(log, propensities=propensities, policy_aware=aware) for aware in (False, True))
    np.testing.assert_allclose(plain.targets, aware.targets)


@pytest.mark.parametrize("policy_aware", [False, True])
def test_weighted_clicks_are_the_clicks_of_users_who_examine_everything(policy_aware: bool) -> None:
    """Summed over sessions, the weighted clicks of a document are in the ratio of its attractiveness."""
    dataset, model = dataset_of(4, max_grade=2), PositionBasedModel()
    log = concatenate(Simulation(dataset, UniformLogger(), model, 300_000, k=4).blocks(), 300_000)
    prepared = prepare(log, examined(*model.examination), policy_aware=policy_aware)
    clicks = np.bincount(prepared.ranking.ravel(), (prepared.targets * prepared.count[:, None]).ravel())
    attractiveness = 0.1 + 0.9 * (2.0**dataset.relevance - 1) / (2**2 - 1)
    np.testing.assert_allclose(clicks / clicks.sum(), attractiveness / attractiveness.sum(), rtol=0.03)


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
