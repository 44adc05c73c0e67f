import numpy as np
import pytest

from cuolr.clicks.pbm import PositionBasedModel
from cuolr.clicks.simulate import Simulation
from cuolr.clicks.trust import TrustBiasModel
from cuolr.data.normalise import Normaliser
from cuolr.data.synthetic import generate_splits
from cuolr.examination.regression_based_em import EmSettings, ShownCells, fit_examination, posteriors
from cuolr.examination.trust_bias_em import TrustBias, fit_trust_bias, relevance_given
from cuolr.logs.aggregate import aggregate
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.log_folder import concatenate
from cuolr.logs.scaled_documents import ScaledDocuments
from cuolr.policies.random_policy import UniformLogger
from cuolr.types import Doubles
from tests.data.small_data import candidates_of, log_of
from tests.learners.lists import no_scaling


def estimated(log: ClickLog, seed: int = 1, rounds: int = 60) -> Doubles:
    shown = ScaledDocuments.of(log, Normaliser.fit("log-min-max", log.candidates))
    return fit_examination(log, shown, np.arange(len(log)), EmSettings(rounds, 5, 3e-3, seed))


def test_posteriors_are_those_of_the_joint_distribution() -> None:
    """P(E, R, C) by enumeration: C = E·R."""
    for examination, relevance in ((0.3, 0.6), (0.9, 0.05), (0.5, 0.5)):
        chance = {
            (e, r): (examination if e else 1 - examination) * (relevance if r else 1 - relevance)
            for e in (0, 1)
            for r in (0, 1)
        }
        no_click = sum(p for (e, r), p in chance.items() if not e * r)
        expected = chance[1, 0] / no_click, chance[0, 1] / no_click
        examined, relevant = posteriors(np.array([examination]), np.array([relevance]))
        assert (examined.item(), relevant.item()) == pytest.approx(expected)


def test_cells_are_counted_by_document_and_position() -> None:
    log = log_of(candidates_of(2, 1), [0, 0, 0, 1], [[0, 1], [1, 0], [0, 1], [0, -1]], [[1, 0], [1, 1], [1, 1], [0, 0]])
    for rows in (log, aggregate(log)):
        cells = ShownCells.of(rows, ScaledDocuments.of(rows, no_scaling()), np.arange(len(rows)))
        assert list(zip(cells.document.tolist(), cells.position.tolist(), strict=True)) == [
            (0, 0), (0, 1), (1, 0), (1, 1), (2, 0),
        ]  # fmt: skip
        assert cells.impressions.tolist() == [2, 1, 1, 2, 1]
        assert cells.clicks.tolist() == [2, 1, 1, 1, 0]


@pytest.mark.parametrize("seed", [1, 2])
def test_true_examination_is_recovered_from_a_stochastic_log(seed: int) -> None:
    train, _, _ = generate_splits("tiny", 60, 4, 4, seed=seed)
    model, sessions = PositionBasedModel(), 60_000
    log = concatenate(Simulation(train, UniformLogger(), model, sessions, k=5, seed=seed).blocks(), sessions)
    true = np.array(model.examination[:5]) / model.examination[0]
    np.testing.assert_allclose(estimated(aggregate(log), seed), true, rtol=0.06)


def test_without_clicks_or_rows_it_is_finite_and_the_first_position_is_1() -> None:
    log = log_of(candidates_of(3), [0, 0], [[0, 1, -1], [2, 1, -1]], [[0, 0, 0], [0, 0, 0]])
    examination = estimated(log, rounds=3)
    assert np.isfinite(examination).all()
    assert examination[0] == 1
    assert examination[2] == examination[1]  # nothing was shown there


def test_the_same_seed_gives_the_same_estimate() -> None:
    log = log_of(candidates_of(3), [0, 0, 0], [[0, 1], [2, 1], [1, 0]], [[1, 0], [0, 1], [0, 0]])
    np.testing.assert_array_equal(estimated(log, rounds=4), estimated(log, rounds=4))
    assert (estimated(log, rounds=4) != estimated(log, seed=2, rounds=4)).any()


def estimated_trust(log: ClickLog, rounds: int = 300) -> TrustBias:
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


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [1, 2])
def test_true_bias_is_recovered_from_a_stochastic_log(seed: int) -> None:
    model, sessions = TrustBiasModel(), 60_000
    train, _, _ = generate_splits("tiny", 60, 4, 4, seed=seed)
    log = concatenate(Simulation(train, UniformLogger(), model, sessions, k=5, seed=seed).blocks(), sessions)
    theta, relevant, irrelevant = (
        np.array(values[:5]) for values in (model.examination, model.click_relevant, model.click_irrelevant)
    )
    true, found = TrustBias.of(theta * relevant, theta * irrelevant), estimated_trust(aggregate(log))
    np.testing.assert_allclose(found.slope, true.slope, rtol=0.1)
    np.testing.assert_allclose(found.intercept, true.intercept, atol=0.02)


def test_without_clicks_it_is_finite() -> None:
    log = log_of(candidates_of(3), [0, 0], [[0, 1, -1], [2, 1, -1]], [[0, 0, 0], [0, 0, 0]])
    bias = estimated_trust(log, rounds=3)
    assert np.isfinite([bias.slope, bias.intercept]).all()
    assert (bias.slope > 0).all()
    assert bias.slope[2] == bias.slope[1]  # nothing was shown there
