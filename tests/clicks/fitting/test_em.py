import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuolr.clicks.fitting.beta_prior import BetaPrior
from cuolr.clicks.fitting.click_model_fit import CLICK_FITS
from cuolr.clicks.fitting.em import Stopping, em_step, maximise
from cuolr.errors import InputError
from cuolr.logs.click_patterns import ClickPatterns
from tests.clicks.fitting.small_patterns import random_log
from tests.small_log import small_log

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
