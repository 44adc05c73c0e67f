import numpy as np
import pytest

from cuolr.clicks.pbm import PositionBasedModel
from cuolr.clicks.trust import TrustBiasModel
from tests.clicks.three_documents import A1, A2, A3, R1, R2, R3, click_probability


def test_clicks_on_three_documents() -> None:
    expected = [
        0.68 * (0.98 * R1 + 0.65 / 1 * (1 - R1)),
        0.61 * (0.97 * R2 + 0.65 / 2 * (1 - R2)),
        0.48 * (0.96 * R3 + 0.65 / 3 * (1 - R3)),
    ]
    assert click_probability(TrustBiasModel()) == pytest.approx(expected)


def test_noise_makes_an_irrelevant_document_look_relevant() -> None:
    clicks = click_probability(TrustBiasModel(noise=0.1, eta=0))
    assert clicks[1] == pytest.approx(0.97 * 0.1 + 0.65 / 2 * 0.9)


def test_without_trust_it_is_the_position_based_model() -> None:
    model = TrustBiasModel(noise=0.1, click_relevant=(1.0,), click_irrelevant=(0.0,))
    assert click_probability(model) == pytest.approx([0.68 * A1, 0.61 * A2, 0.48 * A3])
    assert click_probability(model) == pytest.approx(click_probability(PositionBasedModel()))


def test_the_constants_are_the_published_ones_down_to_rank_twenty_five() -> None:
    where = np.ones((1, 25), np.bool_)
    model = TrustBiasModel(eta=0)
    relevant = model.click_probability(np.ones((1, 25), np.float32), where)[0]
    irrelevant = model.click_probability(np.zeros((1, 25), np.float32), where)[0]
    assert relevant == pytest.approx([1 - (min(rank, 20) + 1) / 100 for rank in range(1, 26)])
    assert irrelevant == pytest.approx([0.65 / min(rank, 10) for rank in range(1, 26)])
