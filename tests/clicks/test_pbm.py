import numpy as np
import pytest

from cuolr.clicks.pbm import PositionBasedModel
from tests.clicks.three_documents import A1, A2, A3, click_probability


def test_clicks_on_three_documents() -> None:
    assert click_probability(PositionBasedModel()) == pytest.approx([0.68 * A1, 0.61 * A2, 0.48 * A3])


def test_eta_is_a_power() -> None:
    assert click_probability(PositionBasedModel(eta=2)) == pytest.approx([0.68**2 * A1, 0.61**2 * A2, 0.48**2 * A3])


def test_without_severity_there_is_no_position_bias() -> None:
    model = PositionBasedModel(eta=0)
    assert click_probability(model) == pytest.approx([A1, A2, A3])
    lists = np.full((1000, 15), 0.5, np.float32)
    _, examination = model.sample(lists, np.ones(lists.shape, np.bool_), np.random.default_rng(1))
    assert examination.all()


def test_without_noise_an_irrelevant_document_is_never_clicked() -> None:
    assert click_probability(PositionBasedModel(noise=0)) == pytest.approx([0.68 * 3 / 15, 0, 0.48 * 7 / 15])


def test_the_last_parameter_carries_on_in_lists_of_fifteen() -> None:
    relevance = np.ones((1, 15), np.float32)
    clicks = PositionBasedModel().click_probability(relevance, np.ones((1, 15), np.bool_))
    assert clicks[0, 9:] == pytest.approx([0.06] * 6)
