import numpy as np
import pytest

from cuolr.clicks.simulate import Simulation
from cuolr.clicks.trust import TrustBiasModel
from cuolr.data.normalise import Normaliser
from cuolr.data.synthetic import generate_splits
from cuolr.examination.regression_based_em import EmSettings
from cuolr.examination.trust_bias_em import TrustBias, fit_trust_bias, relevance_given
from cuolr.logs.aggregate import aggregate
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.log_folder import concatenate
from cuolr.logs.scaled_documents import ScaledDocuments
from cuolr.policies.random_policy import UniformLogger
from tests.data.small_data import candidates_of, log_of


def estimated(log: ClickLog, rounds: int = 300) -> TrustBias:
    shown = ScaledDocuments.of(log, Normaliser.fit("log-min-max", log.candidates))
    return fit_trust_bias(log, shown, np.arange(len(log)), EmSettings(rounds, 5, 3e-3, seed=1))


def test_relevance_given_a_click_is_that_of_the_joint_distribution() -> None:
    u, v, gamma = 0.8, 0.3, 0.25
    if_click, if_skip = (float(p[0]) for p in relevance_given(np.array([u]), np.array([v]), np.array([gamma])))
    assert if_click == pytest.approx(0.8 * 0.25 / (0.8 * 0.25 + 0.3 * 0.75))
    assert if_skip == pytest.approx(0.2 * 0.25 / (0.2 * 0.25 + 0.7 * 0.75))


def test_without_trust_it_is_the_position_based_model() -> None:
    bias = TrustBias.of(np.array([0.8, 0.4, 0.2]), np.zeros(3))
    np.testing.assert_allclose(bias.slope, [1.0, 0.5, 0.25])
    np.testing.assert_allclose(bias.intercept, [0.0, 0.0, 0.0])


def test_the_origin_and_scale_of_relevance_change_nothing() -> None:
    """γ = 0.2 + 0.5·γ' gives β + 0.2·α and 0.5·α; only the ratio of slopes and the least intercept are identified."""
    relevant, irrelevant = np.array([0.9, 0.5, 0.3]), np.array([0.3, 0.1, 0.02])
    slope = relevant - irrelevant
    moved = TrustBias.of(irrelevant + 0.7 * slope, irrelevant + 0.2 * slope)
    plain = TrustBias.of(relevant, irrelevant)
    np.testing.assert_allclose(moved.slope, plain.slope)
    np.testing.assert_allclose(moved.intercept, plain.intercept, atol=1e-12)


@pytest.mark.parametrize("seed", [1, 2])
def test_true_bias_is_recovered_from_a_stochastic_log(seed: int) -> None:
    model, sessions = TrustBiasModel(), 60_000
    train, _, _ = generate_splits("tiny", 60, 4, 4, seed=seed)
    log = concatenate(Simulation(train, UniformLogger(), model, sessions, k=5, seed=seed).blocks(), sessions)
    theta, relevant, irrelevant = (
        np.array(values[:5]) for values in (model.examination, model.click_relevant, model.click_irrelevant)
    )
    true, found = TrustBias.of(theta * relevant, theta * irrelevant), estimated(aggregate(log))
    np.testing.assert_allclose(found.slope, true.slope, rtol=0.1)
    np.testing.assert_allclose(found.intercept, true.intercept, atol=0.02)


def test_without_clicks_it_is_finite() -> None:
    log = log_of(candidates_of(3), [0, 0], [[0, 1, -1], [2, 1, -1]], [[0, 0, 0], [0, 0, 0]])
    bias = estimated(log, rounds=3)
    assert np.isfinite([bias.slope, bias.intercept]).all()
    assert (bias.slope > 0).all()
    assert bias.slope[2] == bias.slope[1]  # nothing was shown there
