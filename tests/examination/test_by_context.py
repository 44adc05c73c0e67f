from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from cuolr.clicks.click_model import click_model
from cuolr.clicks.simulate import Simulation
from cuolr.clicks.simulated_context import SimulatedContext
from cuolr.data.synthetic import generate
from cuolr.errors import InputError
from cuolr.examination import by_context
from cuolr.examination.from_clicks import ExaminationModel
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.counts import ClickCounts
from cuolr.policies.plackett_luce import StochasticLogger
from cuolr.supervised.ranksvm import fit_ranksvm
from cuolr.types import Doubles
from tests.small_log import small_log

TRAIN = generate("tiny", 100, seed=3)
LOGGER = StochasticLogger(fit_ranksvm(TRAIN, 0.05, 1), 1.0)
# Examination of desktop and, to the power of the severity, of mobile: 0.97 and 0.62 at position 2.
DESKTOP = (1.0, 0.97, 0.94, 0.91, 0.88)
SEVERITY = float(np.log(0.62) / np.log(0.97))


def two_devices(sessions: int, mobile: float = 0.4, seed: int = 1) -> ClickLog:
    context = SimulatedContext("device", ("desktop", "mobile"), (1 - mobile, mobile), (1.0, SEVERITY))
    model = click_model("pbm", examination=DESKTOP)
    return Simulation(TRAIN, LOGGER, model, sessions, k=5, seed=seed, contexts=(context,)).log()


def expected_log(tables: Doubles, factor: Doubles, count: tuple[int, int]) -> ClickLog:
    """Lists of a random order, in two levels, with the mean clicks of a position-based model."""
    log = small_log(rows=300)
    rng = np.random.default_rng(0)
    attractiveness = rng.uniform(0.1, 0.9, log.candidates.n_documents)
    both = log.select(np.repeat(np.arange(len(log)), 2))
    level = np.tile([0, 1], len(log))
    clicks = (factor[level, None] * tables[level]) * attractiveness[both.documents] * both.where
    return replace(
        both,
        clicks=clicks,
        count=np.array(count)[level],
        aggregated=True,
        context={"device": np.array(["desktop", "mobile"])[level]},
    )


def test_exact_click_rates_give_the_exact_examination_of_each_level() -> None:
    tables = np.array([[1, 0.9, 0.8, 0.7, 0.6], [1, 0.6, 0.4, 0.3, 0.2]])
    model = ExaminationModel.fit(expected_log(tables, np.array([1.0, 0.5]), (600_000, 400_000)))
    assert model.by_context is not None
    np.testing.assert_allclose(model.by_context.tables[:, :, 0], tables, rtol=0.005)
    mean = 0.6 * 1.0 + 0.4 * 0.5  # at position 1, of all sessions
    np.testing.assert_allclose(model.by_context.scale, [1 / mean, 0.5 / mean], rtol=0.005)
    # Of all together: the mean of both, weighted by their clicks.
    pooled = (0.6 * tables[0] + 0.4 * 0.5 * tables[1]) / mean
    np.testing.assert_allclose(model.table[:, 0], pooled, rtol=0.03)


def test_a_level_with_little_data_has_the_curve_of_the_other() -> None:
    tables = np.array([[1, 0.9, 0.8, 0.7, 0.6], [1, 0.6, 0.4, 0.3, 0.2]])
    few = ExaminationModel.fit(expected_log(tables * 0.01, np.ones(2), (100_000, 1)))
    assert few.by_context is not None
    desktop, mobile = few.by_context.tables[:, :, 0]
    np.testing.assert_allclose(desktop, tables[0], rtol=0.01)
    assert (mobile > tables[1] + 0.6 * (tables[0] - tables[1]))[1:].all(), "nearly the curve of all"


@pytest.mark.thorough
def test_desktop_and_mobile_are_told_apart() -> None:
    log = two_devices(60_000)
    model, pooled = ExaminationModel.fit(log), ExaminationModel.fit(replace(log, context={}))
    assert model.probabilities("desktop")[1, 0] == pytest.approx(0.97, rel=0.03)
    assert model.probabilities("mobile")[1, 0] == pytest.approx(0.62, rel=0.03)
    np.testing.assert_allclose(model.probabilities("desktop")[:, 0], DESKTOP, rtol=0.06)
    np.testing.assert_allclose(model.probabilities("mobile")[:, 0], np.array(DESKTOP) ** SEVERITY, atol=0.03)
    assert 0.75 < pooled.probabilities()[1, 0] < 0.85
    assert pooled.by_context is None


def test_levels_that_do_not_differ_get_one_curve() -> None:
    log = two_devices(20_000, mobile=0.0)
    device = np.random.default_rng(0).choice(["a", "b", "c"], len(log), p=[0.6, 0.3, 0.1])
    model = ExaminationModel.fit(replace(log, context={"device": device}))
    for level in ("a", "b", "c"):
        np.testing.assert_allclose(model.probabilities(level)[:, 0], model.table[:, 0], rtol=0.04)


def test_expected_examinations_are_those_of_the_level_of_each_list() -> None:
    log = two_devices(2_000)
    model, counts = ExaminationModel.fit(log), ClickCounts.of(log)
    expected = np.zeros((len(counts.lists), counts.lists.k))
    assert model.by_context is not None
    for row, position, last, impressions in zip(*counts.coordinates(), counts.impressions, strict=True):
        level = counts.levels[counts.level_of_list[row]]
        scale = model.by_context.scale[model.by_context.levels.index(level)]
        expected[row, position] += impressions * scale * model.probabilities(level)[position, last]
    np.testing.assert_allclose(model.expected_examinations(counts), expected)


def test_a_log_without_context_has_the_curve_of_all() -> None:
    log = two_devices(2_000)
    model, counts = ExaminationModel.fit(log), ClickCounts.of(replace(log, context={}))
    np.testing.assert_array_equal(
        model.expected_examinations(counts), ExaminationModel(model.table).expected_examinations(counts)
    )


def test_a_model_comes_back_from_json() -> None:
    model = ExaminationModel.fit(two_devices(2_000))
    again = ExaminationModel.from_dict(model.as_dict())
    assert again.by_context is not None
    assert model.by_context is not None
    assert again.by_context.levels == model.by_context.levels == ("desktop", "mobile")
    np.testing.assert_array_equal(again.by_context.tables, model.by_context.tables)
    np.testing.assert_array_equal(again.by_context.scale, model.by_context.scale)
    with pytest.raises(InputError, match="expected one of desktop, mobile, found 'tablet'"):
        again.probabilities("tablet")
    with pytest.raises(InputError, match="expected one of no level, found 'tablet'"):
        ExaminationModel.full(3).probabilities("tablet")


def test_the_gradient_of_the_parameters_is_that_of_finite_differences() -> None:
    rng = np.random.default_rng(0)
    levels, k = 3, 2
    design = by_context._Design(rng.normal(size=k * (k + 1)), levels, k)
    weights = rng.normal(size=(levels, k * (k + 1)))
    values = rng.normal(size=sum(design.sizes))

    def total(parameters: Doubles) -> float:
        return float((weights * (parameters[:levels, None] + design.deviations(parameters))).sum())

    np.testing.assert_allclose(approx_fprime(values, total, 1e-6), design.back(weights), atol=1e-5)


@pytest.mark.thorough
def test_clicks_above_count_as_well() -> None:
    """Under UBM with two severities, the table of each level is that of its severity, by last click above, too."""
    context = SimulatedContext("device", ("desktop", "mobile"), (0.5, 0.5), (0.5, 1.5))
    simulation = Simulation(TRAIN, LOGGER, click_model("ubm"), 100_000, k=4, contexts=(context,))
    model = ExaminationModel.fit(simulation.log())
    desktop, mobile = model.probabilities("desktop"), model.probabilities("mobile")
    known = np.isfinite(desktop) & (np.arange(4)[:, None] > 0)
    # χ_mobile = χ^1.5 and χ_desktop = χ^0.5, each relative to position 1: so log χ_mobile = 3 log χ_desktop.
    ratio = np.log(mobile[known]) / np.log(desktop[known])
    assert np.median(ratio) == pytest.approx(3.0, rel=0.15)
