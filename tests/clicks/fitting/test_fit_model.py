from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuolr.clicks.click_model import click_model, relevance_of
from cuolr.clicks.fitting.beta_prior import BetaPrior
from cuolr.clicks.fitting.click_model_fit import CLICK_FITS
from cuolr.clicks.fitting.em import Stopping, em_step, maximise
from cuolr.clicks.fitting.fit_model import fit_click_model, with_errors
from cuolr.errors import InputError
from cuolr.logs.click_patterns import ClickPatterns
from cuolr.logs.clicklog import ClickLog
from cuolr.types import Candidates
from studies.click_fit_error import MODELS, errors_of, true_values
from tests.clicks.fitting.every_outcome import dataset_of, patterns_of, random_log
from tests.small_log import small_candidates, small_log

every_fit = pytest.mark.parametrize("name", CLICK_FITS.names())
PATTERNS = ClickPatterns.of(small_log(rows=200))


@every_fit
@settings(max_examples=10)
@given(seed=st.integers(0, 10_000), strength=st.floats(0.01, 20))
def test_no_step_decreases_the_penalised_likelihood(name: str, seed: int, strength: float) -> None:
    model = CLICK_FITS.get(name)(PATTERNS.k, len(PATTERNS.pairs))
    rng = np.random.default_rng(seed)
    values = {parameter: rng.uniform(0.02, 0.98, len(value)) for parameter, value in model.start().items()}
    priors = {parameter: BetaPrior(np.array([strength * 0.3]), np.array([strength * 0.7])) for parameter in values}
    data = model.data(PATTERNS)
    objective = []
    for _ in range(6):
        values, at_start, _ = em_step(model, values, data, priors)
        objective.append(at_start)
    assert np.diff(objective).min() >= -1e-9 * abs(objective[0])


@pytest.mark.parametrize("name", sorted(set(CLICK_FITS.names()) - {"pbm", "ubm", "trust"}))
def test_without_a_free_scale_the_result_is_a_maximum(name: str) -> None:
    """The gradient of the penalised likelihood in logits, by Fisher's identity, is zero up to the tolerance."""
    model = CLICK_FITS.get(name)(PATTERNS.k, len(PATTERNS.pairs))
    data, values = model.data(PATTERNS), model.start()
    priors = {parameter: BetaPrior.weak() for parameter in values}
    found = maximise(model, values, data, priors, Stopping(tolerance=1e-13, cycles=3_000))
    assert found.finished
    for parameter, value in found.values.items():
        successes = found.expectation.successes[parameter] + 0.5
        assert np.abs(successes - (found.expectation.trials[parameter] + 1) * value).max() < 0.01


@every_fit
def test_acceleration_reaches_what_plain_steps_reach(name: str) -> None:
    patterns = ClickPatterns.of(random_log("dcm", sessions=1_000, queries=12))
    model = CLICK_FITS.get(name)(patterns.k, len(patterns.pairs))
    data, values = model.data(patterns), model.start()
    priors = {parameter: BetaPrior.weak() for parameter in values}
    found = maximise(model, values, data, priors, Stopping(tolerance=1e-10))
    objective = -np.inf
    values = model.centred(values)
    for _ in range(300):
        following, objective, _ = em_step(model, values, data, priors)
        values = model.centred(following)
    assert found.objective[-1] >= objective - 1e-4 * abs(objective)


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(InputError, match="tolerance"):
        Stopping(tolerance=0)


@pytest.mark.thorough
@pytest.mark.parametrize("name", MODELS)
def test_the_parameters_of_a_simulated_log_are_recovered(name: str) -> None:
    """Within 0.03 on average, and the intervals cover the truth at most positions; some 50 impressions a document."""
    dataset, users = dataset_of(), click_model(name, **MODELS[name])
    patterns = ClickPatterns.of(random_log(name, sessions=20_000, **MODELS[name]))
    relevance = relevance_of(dataset.relevance[patterns.pairs], dataset.max_grade).astype(np.float64)
    fitted = fit_click_model(name, patterns)
    truth = true_values(name, users, fitted.model, relevance)
    of_global, of_pairs = errors_of(fitted, truth)
    assert fitted.finished
    assert of_pairs < 0.06
    if fitted.global_names:
        assert of_global < 0.03
        fitted = with_errors(fitted, patterns, samples=10)
        for parameter in fitted.global_names:
            known = np.isfinite(fitted.errors[parameter]) & np.isfinite(truth[parameter])
            error = np.abs(fitted.values[parameter] - truth[parameter])[known]
            assert np.median(error - 3 * fitted.errors[parameter][known]) < 0.01


@pytest.mark.parametrize("name", ["pbm", "dcm"])
def test_more_sessions_make_the_error_smaller(name: str) -> None:
    dataset, users = dataset_of(), click_model(name)
    errors = []
    for sessions in (1_000, 16_000):
        patterns = ClickPatterns.of(random_log(name, sessions))
        relevance = relevance_of(dataset.relevance[patterns.pairs], dataset.max_grade).astype(np.float64)
        fitted = fit_click_model(name, patterns)
        errors.append(errors_of(fitted, true_values(name, users, fitted.model, relevance)))
    assert errors[1][0] < 0.6 * errors[0][0]
    assert errors[1][1] < 0.6 * errors[0][1]


@every_fit
def test_the_prior_means_of_click_rates_and_unseen_pairs_are_probabilities(name: str) -> None:
    fitted = fit_click_model(name, ClickPatterns.of(small_log(rows=400)))
    assert set(fitted.unseen) == set(fitted.model.by_pair)
    assert all(0 < value < 1 for value in fitted.unseen.values())


def test_a_pair_that_is_never_shown_in_training_has_the_learned_mean() -> None:
    patterns = ClickPatterns.of(random_log("perfect", sessions=4_000))
    without = patterns.select(~(patterns.documents == 7).any(axis=1))
    fitted = fit_click_model("ctr-document", without)
    assert fitted.values["rate"][7] == pytest.approx(fitted.unseen["rate"])
    assert fitted.unseen["rate"] == pytest.approx(np.delete(fitted.values["rate"], 7).mean(), abs=0.02)


def one_position(rows: int = 30) -> ClickLog:
    log = small_log(rows=rows, k=5)
    return replace(log, ranking=log.ranking[:, :1], clicks=log.clicks[:, :1])


def without_clicks() -> ClickLog:
    log = small_log(rows=30)
    return replace(log, clicks=np.zeros_like(log.clicks))


def all_clicked() -> ClickLog:
    log = small_log(rows=30)
    return replace(log, clicks=log.where.astype(np.uint8))


def long_and_nearly_all_clicked() -> ClickLog:
    """(1 − a)^200 is below the smallest float."""
    candidates = Candidates(np.zeros((200, 1), np.float32), np.array([0, 200]), np.array(["q"]))
    ranking = np.tile(np.arange(200, dtype=np.int16), (60, 1))
    clicks = np.ones((60, 200), np.uint8)
    clicks[:5, 150:] = 0
    return ClickLog(candidates, np.zeros(60, np.int32), ranking, clicks, np.ones(60, np.int64))


def one_list_per_query() -> ClickLog:
    candidates = small_candidates()
    query = np.arange(120, dtype=np.int32) % 6
    ranking = np.tile(np.arange(3, dtype=np.int16), (120, 1))
    clicks = (np.random.default_rng(1).random((120, 3)) < 0.4).astype(np.uint8)
    return ClickLog(candidates, query, ranking, clicks, np.ones(120, np.int64))


@pytest.mark.thorough
@every_fit
@pytest.mark.parametrize(
    "log", [one_position, without_clicks, all_clicked, one_list_per_query, long_and_nearly_all_clicked]
)
def test_extreme_logs_give_probabilities_and_no_nan(name: str, log: object) -> None:
    assert callable(log)
    patterns = ClickPatterns.of(log())
    with np.errstate(all="raise", under="ignore"):
        fitted = with_errors(fit_click_model(name, patterns), patterns, samples=2)
    for parameter, value in fitted.values.items():
        assert ((value >= 0) & (value <= 1)).all(), parameter
    assert np.isfinite(fitted.objective).all()
    for parameter, errors in fitted.errors.items():
        assert np.array_equal(np.isfinite(errors), fitted.trials[parameter] > 0)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["pbm", "dcm"])
def test_standard_errors_are_the_spread_over_repeated_logs(name: str) -> None:
    fits = [fit_click_model(name, ClickPatterns.of(random_log(name, 4_000, seed=seed))) for seed in range(1, 21)]
    parameter = fits[0].global_names[0]
    spread = np.std([fit.values[parameter] for fit in fits], axis=0, ddof=1)
    patterns = ClickPatterns.of(random_log(name, 4_000, seed=1))
    errors = with_errors(fits[0], patterns, samples=40).errors[parameter]
    known = np.isfinite(errors) & (spread > 0)
    assert errors[known].mean() == pytest.approx(spread[known].mean(), rel=0.35)


def test_hand_worked_rates() -> None:
    """Document 0: 3 clicks of 4 sessions at position 1; document 1: 1 of 4 at position 2."""
    patterns = patterns_of([[0, 1], [0, 1], [0, 1]], [[1, 0], [1, 1], [0, 0]], [2, 1, 1])
    fitted = fit_click_model("ctr-position", patterns)
    assert fitted.values["rate"] == pytest.approx([(3 + 0.5) / (4 + 1), (1 + 0.5) / (4 + 1)])
    fitted = fit_click_model("ctr", patterns)
    assert fitted.values["rate"] == pytest.approx([(4 + 0.5) / (8 + 1)])
