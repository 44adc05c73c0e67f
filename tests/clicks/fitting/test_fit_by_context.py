import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cuolr.clicks.click_model import click_model, read_click_model
from cuolr.clicks.fitting.click_model_fit import CLICK_FITS
from cuolr.clicks.fitting.compare_fits import compare_fits, difference_if_alike
from cuolr.clicks.fitting.evaluate_fit import evaluate_fit
from cuolr.clicks.fitting.fit_by_context import FitByContext, fit_for
from cuolr.clicks.fitting.fit_model import fit_click_model, with_errors
from cuolr.clicks.fitting.simulated_users import UserSimulation, load_users, save_users
from cuolr.clicks.pbm import PositionBasedModel
from cuolr.clicks.simulate import Simulation
from cuolr.clicks.simulated_context import SimulatedContext
from cuolr.errors import InputError
from cuolr.logs.click_patterns import ClickPatterns
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.log_folder import concatenate
from cuolr.policies.random_policy import UniformLogger
from tests.clicks.fitting.every_outcome import dataset_of
from tests.clicks.fitting.test_click_model_fit import LISTS, outcomes, random_values
from tests.small_log import small_log

every_fit = pytest.mark.parametrize("name", CLICK_FITS.names())
# Users read far down the list on one device and hardly on the other.
DEVICES = SimulatedContext("device", ("desktop", "mobile"), (0.6, 0.4), (0.3, 3.0))


def log_by_device(name: str = "pbm", sessions: int = 12_000) -> ClickLog:
    users = click_model(name)
    return Simulation(dataset_of(), UniformLogger(), users, sessions, k=5, seed=3, contexts=(DEVICES,)).log()


def by_device(log: ClickLog) -> ClickPatterns:
    return ClickPatterns.of(log, by=("context",)).in_contexts()


def two_levels(rows: int = 300) -> ClickPatterns:
    log = small_log(rows=rows)
    return by_device(replace(log, context={"device": np.where(np.arange(rows) % 3, "desktop", "mobile")}))


def test_counts_by_context_have_the_levels_of_the_log() -> None:
    patterns = two_levels()
    assert patterns.levels == ("desktop", "mobile")
    assert [level.sessions for level in patterns.by_level()] == [200, 100]
    assert patterns.alike().level is None
    train, held_out = patterns.held_out(2)
    assert sum(part.sessions for part in [*train.by_level(), *held_out.by_level()]) == 300
    one = replace(small_log(rows=30), context={"device": np.full(30, "tv")})
    assert by_device(one).level is None


@every_fit
def test_two_levels_of_the_same_sessions_are_as_one_with_each_session_twice(name: str) -> None:
    log = small_log(rows=150)
    both = concatenate([replace(log, context={"device": np.full(150, device)}) for device in ("a", "b")], 300)
    patterns = by_device(both)
    # The folds differ between the copies, but parameters are fitted to all of them.
    levels, one = fit_click_model(name, patterns), fit_click_model(name, patterns.alike())
    for parameter, value in one.values.items():
        known = one.trials[parameter] > 20
        levels_known, expected = known, value
        if parameter not in one.model.by_pair:
            levels_known, expected = np.tile(known, 2), np.tile(value, 2)
        # A global parameter has the weak prior once for both, or once in each level.
        assert levels.values[parameter][levels_known] == pytest.approx(expected[levels_known], abs=0.03)


@every_fit
def test_the_expected_counts_of_pairs_are_those_of_the_levels_together(name: str) -> None:
    patterns = two_levels()
    model = fit_for(name, patterns)
    assert isinstance(model, FitByContext)
    values = random_values(model, seed=1)
    found = model.expect(values, model.data(patterns))
    parts = zip(model.split(values), patterns.by_level(), strict=True)
    levels = [model.of_level.expect(part, model.of_level.data(level)) for part, level in parts]
    assert found.log_likelihood == pytest.approx(sum(level.log_likelihood for level in levels))
    for parameter in values:
        for kind in ("successes", "trials"):
            of_levels = [getattr(level, kind)[parameter] for level in levels]
            expected = sum(of_levels) if parameter in model.by_pair else np.concatenate(of_levels)
            assert getattr(found, kind)[parameter] == pytest.approx(expected)


@every_fit
@pytest.mark.parametrize("documents", LISTS)
def test_a_session_of_unknown_level_is_a_mixture_of_all_levels(name: str, documents: list[int]) -> None:
    model = FitByContext(3, 3, CLICK_FITS.get(name)(3, 3), ("a", "b"), (0.3, 0.7))
    values = random_values(model, seed=2)
    levels = [outcomes(name, part, documents) for part in model.split(values)]
    chance = {
        clicks: sum(
            s * level[clicks].probability for s, level in zip(model.share, levels, strict=True) if clicks in level
        )
        for clicks in itertools.product((False, True), repeat=3)
    }
    shown = np.array([documents])
    marginal = model.marginal(values, shown)[0]
    for clicks in (clicks for clicks, likely in chance.items() if likely):
        conditional = model.conditional(values, shown, np.array([clicks]))[0]
        for k in np.flatnonzero(shown[0] >= 0):
            alike = {other: p for other, p in chance.items() if other[:k] == clicks[:k]}
            clicked = sum(p for other, p in alike.items() if other[k])
            assert conditional[k] == pytest.approx(clicked / sum(alike.values()))
            assert marginal[k] == pytest.approx(sum(p for other, p in chance.items() if other[k]))


def test_each_device_has_its_own_examination_and_documents_are_the_same() -> None:
    """η is .3 on the desktop and 3 on the mobile: examination to the power of η; the largest is 1."""
    patterns = by_device(log_by_device(sessions=30_000))
    fitted = with_errors(fit_click_model("pbm", patterns), patterns, samples=10)
    examination = np.array(PositionBasedModel().examination[:5])
    truth = np.concatenate([examination**0.3, examination**3]) / examination[0] ** 0.3
    assert fitted.values["examination"] == pytest.approx(truth, abs=0.06)
    low, high = fitted.interval("examination")
    assert np.mean((low - 0.02 <= truth) & (truth <= high + 0.02)) >= 0.8
    assert fitted.as_dict()["parameters"]["examination"]["values"][1][4] == fitted.values["examination"][9]
    assert fitted.model.entry_name("examination", 7) == "mobile, position 3"
    assert fit_for("dbn", patterns).entry_name("perseverance", 1) == "mobile"


def test_the_likelihood_of_held_out_sessions_is_that_of_their_own_level() -> None:
    patterns = two_levels()
    fitted = fit_click_model("dcm", patterns)
    assert isinstance(fitted.model, FitByContext)
    found = evaluate_fit(fitted, patterns)
    levels = [
        evaluate_fit(replace(fitted, model=fitted.model.of_level, values=values), level)
        for values, level in zip(fitted.model.split(fitted.values), patterns.by_level(), strict=True)
    ]
    assert found.log_likelihood == pytest.approx(
        (200 * levels[0].log_likelihood + 100 * levels[1].log_likelihood) / 300
    )
    assert found.sessions_by_unit.sum() == 300


def test_a_level_of_context_is_not_mistaken_for_users_who_react_to_clicks() -> None:
    """Fitted together, a click low in the list says that more follow: PBM would be left behind."""
    patterns, names = by_device(log_by_device()), ["pbm", "ubm"]
    compared, together = compare_fits(patterns, names), compare_fits(patterns.alike(), names)
    assert not compared.differences["pbm"].is_more_than_noise
    assert together.differences["pbm"].is_more_than_noise
    loss = difference_if_alike(patterns, compared)
    assert loss is not None
    assert loss.is_more_than_noise
    assert difference_if_alike(patterns.alike(), together) is None


def test_fitted_users_are_simulated_in_their_own_context(tmp_path: Path) -> None:
    log, file = log_by_device(), tmp_path / "users.toml"
    patterns = by_device(log)
    save_users(fit_click_model("pbm", patterns), patterns, file)
    users = load_users(file, log.candidates)
    simulation = UserSimulation(log, users, 40_000)
    found = concatenate(simulation.blocks(), 40_000)
    for device in DEVICES.values:
        rates = [one.clicks[one.context["device"] == device].mean(axis=0) for one in (log, found)]
        assert rates[1] == pytest.approx(rates[0], abs=0.02)
    assert found.clicks.sum(axis=1).mean() == pytest.approx(simulation.expected_clicks(), abs=0.03)
    # Without the device in the log, both kinds of users are there.
    mixed = UserSimulation(replace(log, context={}), users, 100)
    assert mixed.expected_clicks() == pytest.approx(simulation.expected_clicks(), rel=0.02)
    # On labelled documents: users of the device with the most sessions.
    labelled = read_click_model(file)
    assert isinstance(labelled, PositionBasedModel)
    expected = np.array(PositionBasedModel().examination[:5]) ** 0.3
    assert labelled.examination == pytest.approx(expected / expected[0], abs=0.06)


def test_a_file_with_other_shares_is_one_clear_line(tmp_path: Path) -> None:
    file, patterns = tmp_path / "users.toml", two_levels()
    save_users(fit_click_model("pbm", patterns), patterns, file)
    text = file.read_text()
    shares = next(line for line in text.splitlines() if line.startswith("share"))
    start = text.index(shares)
    end = text.index("]", start) + 1
    for wrong in ("share = [0.5]", "share = [0, 0]"):
        file.write_text(text[:start] + wrong + text[end:])
        with pytest.raises(InputError, match=r"setting 'fit\.share': expected 2 shares"):
            load_users(file, patterns.candidates)
