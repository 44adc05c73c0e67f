"""What every fitted click model must do; a new one is picked up by its name."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuolr.clicks.click_model import ClickModel
from cuolr.clicks.fitting.click_model_fit import CLICK_FITS, ClickModelFit
from cuolr.types import Doubles
from tests.clicks.fitting.every_outcome import Tally, every_outcome, patterns_of

every_fit = pytest.mark.parametrize("name", CLICK_FITS.names())
LISTS = ([0, 1, 2], [2, 0, 1], [1, 2, -1], [0, -1, 1], [-1, 2, 0], [2, -1, -1])


def random_values(model: ClickModelFit, seed: int) -> dict[str, Doubles]:
    rng = np.random.default_rng(seed)
    return {name: rng.uniform(0.05, 0.95, len(value)) for name, value in model.start().items()}


def outcomes(name: str, values: dict[str, Doubles], documents: list[int]) -> dict[tuple[bool, ...], Tally]:
    return every_outcome(name, (3, 3), {n: v.tolist() for n, v in values.items()}, documents)


@pytest.mark.thorough
@every_fit
@settings(max_examples=25)
@given(seed=st.integers(0, 10_000), documents=st.sampled_from(LISTS))
def test_conditional_probabilities_are_those_of_all_hidden_outcomes(name: str, seed: int, documents: list[int]) -> None:
    model = CLICK_FITS.get(name)(3, 3)
    values = random_values(model, seed)
    possible = outcomes(name, values, documents)
    for clicks, tally in possible.items():
        if not tally.probability:
            continue
        conditional = model.conditional(values, np.array([documents]), np.array([clicks]))[0]
        for k, document in enumerate(documents):
            if document >= 0:
                alike = {other: found.probability for other, found in possible.items() if other[:k] == clicks[:k]}
                clicked = sum(chance for other, chance in alike.items() if other[k])
                assert conditional[k] == pytest.approx(clicked / sum(alike.values()), abs=1e-12)


@every_fit
@settings(max_examples=25)
@given(seed=st.integers(0, 10_000), documents=st.sampled_from(LISTS))
def test_marginal_probabilities_are_those_of_all_hidden_outcomes(name: str, seed: int, documents: list[int]) -> None:
    model = CLICK_FITS.get(name)(3, 3)
    values = random_values(model, seed)
    possible = outcomes(name, values, documents)
    marginal = model.marginal(values, np.array([documents]))[0]
    for k, document in enumerate(documents):
        if document >= 0:
            expected = sum(tally.probability for clicks, tally in possible.items() if clicks[k])
            assert marginal[k] == pytest.approx(expected, abs=1e-12)


@every_fit
@settings(max_examples=25)
@given(seed=st.integers(0, 10_000), documents=st.sampled_from(LISTS), number=st.integers(0, 7))
def test_an_e_step_has_the_likelihood_and_the_expected_counts_of_all_hidden_outcomes(
    name: str, seed: int, documents: list[int], number: int
) -> None:
    model = CLICK_FITS.get(name)(3, 3)
    values = random_values(model, seed)
    clicks = tuple(bool(number >> k & 1) and document >= 0 for k, document in enumerate(documents))
    tally = outcomes(name, values, documents).get(clicks)
    if tally is None or not tally.probability:
        return  # the cascade model, after the first click
    patterns = patterns_of([[0, 1, 2], documents], [[0, 0, 0], clicks], [0, 4])
    found = model.expect(values, model.data(patterns))
    assert found.log_likelihood == pytest.approx(4 * np.log(tally.probability), rel=1e-9)
    for parameter in values:
        for counts, expected in ((found.successes, tally.successes), (found.trials, tally.trials)):
            for entry, value in enumerate(counts[parameter]):
                assert value == pytest.approx(4 * expected.get((parameter, entry), 0.0), abs=1e-9)
    for parameter in model.by_pair:
        hidden = found.hidden.get(parameter, np.zeros(len(values[parameter])))
        for entry, value in enumerate(values[parameter]):
            variance = tally.variance(parameter, entry, float(value))
            assert hidden[entry] == pytest.approx(4 * variance, abs=1e-9)


@every_fit
@settings(max_examples=10)
@given(seed=st.integers(0, 10_000), weight=st.sampled_from([1.0, 0.0, 2.5]))
def test_the_e_step_of_a_log_is_the_sum_over_its_sessions(name: str, seed: int, weight: float) -> None:
    model = CLICK_FITS.get(name)(3, 3)
    values, rng = random_values(model, seed), np.random.default_rng(seed)
    documents = [LISTS[row] for row in rng.integers(len(LISTS), size=25)]
    clicks = model.sample(values, np.array(documents), rng.random((25, 3))).tolist()
    patterns = patterns_of(documents, clicks, rng.integers(1, 4, 25).tolist())
    weights = np.where(np.arange(patterns.units) % 2, weight, 1.0)
    found = model.expect(values, model.data(patterns).weighted(weights))
    alone = [model.expect(values, model.data(patterns.select(np.arange(25) == row))) for row in range(25)]
    factor = weights[patterns.unit]
    likelihood = sum(f * one.log_likelihood for f, one in zip(factor, alone, strict=True))
    assert found.log_likelihood == pytest.approx(likelihood, rel=1e-9)
    for what in ("successes", "trials", "hidden"):
        for parameter, number in getattr(found, what).items():
            expected = sum(f * getattr(one, what)[parameter] for f, one in zip(factor, alone, strict=True))
            np.testing.assert_allclose(number, expected, rtol=1e-9, atol=1e-9)


@every_fit
def test_sampled_sessions_have_the_probabilities_of_all_hidden_outcomes(name: str) -> None:
    model = CLICK_FITS.get(name)(3, 3)
    values = random_values(model, seed=3)
    sessions = 100_000
    for documents in ([2, 0, 1], [0, -1, 1]):
        uniforms = np.random.default_rng(4).random((sessions, 3))
        clicks = model.sample(values, np.tile(documents, (sessions, 1)), uniforms)
        possible = outcomes(name, values, documents)
        for pattern in itertools.product((False, True), repeat=3):
            expected = possible[pattern].probability if pattern in possible else 0.0
            share = (clicks == pattern).all(axis=1).mean()
            assert abs(share - expected) <= 4.5 * np.sqrt(expected * (1 - expected) / sessions)


@every_fit
@settings(max_examples=25)
@given(seed=st.integers(0, 10_000))
def test_centring_and_normalising_change_no_click_probability(name: str, seed: int) -> None:
    model = CLICK_FITS.get(name)(3, 3)
    values = random_values(model, seed)
    if name == "trust":
        low, high = (np.minimum, np.maximum)
        one, other = values["click_relevant"], values["click_irrelevant"]
        values |= {"click_relevant": high(one, other) + 0.01, "click_irrelevant": low(one, other)}
    documents, clicks = np.array([[0, 1, 2], [2, 0, 1]]), np.array([[True, False, False], [False, True, False]])
    expected = model.conditional(values, documents, clicks)
    for changed in (model.centred(values), model.normalised(values)):
        assert all(((value >= 0) & (value <= 1)).all() for value in changed.values())
        assert model.conditional(changed, documents, clicks) == pytest.approx(expected, abs=1e-12)


@every_fit
def test_the_click_model_to_simulate_has_the_same_probabilities_on_labelled_documents(name: str) -> None:
    """With attractiveness as the only parameter of documents, of which the simulator makes satisfaction, too."""
    model = CLICK_FITS.get(name)(3, 3)
    values = random_values(model, seed=5)
    if "satisfaction" in values:
        values["satisfaction"] = 0.7 * values["attractiveness"]
    simulated = model.click_model(values)
    assert (simulated is None) == model.is_baseline
    if isinstance(simulated, ClickModel):
        without_noise = type(simulated)(**{**simulated.__dict__, "noise": 0.0})
        relevance = values["attractiveness"][None].astype(np.float32)
        found = without_noise.click_probability(relevance, np.ones((1, 3), np.bool_))
        assert found == pytest.approx(model.marginal(values, np.array([[0, 1, 2]])), rel=1e-5)
