import numpy as np
import pytest

from cuolr.clicks.dcm import DependentClickModel
from tests.clicks.three_documents import A1, A2, A3, click_probability


def test_clicks_on_three_documents() -> None:
    second = 1 - A1 * (1 - 0.68)
    third = second * (1 - A2 * (1 - 0.61))
    assert click_probability(DependentClickModel()) == pytest.approx([A1, second * A2, third * A3])


def test_eta_is_a_power_of_the_continuation() -> None:
    second = 1 - A1 * (1 - 0.68**2)
    third = second * (1 - A2 * (1 - 0.61**2))
    assert click_probability(DependentClickModel(eta=2)) == pytest.approx([A1, second * A2, third * A3])


def test_without_severity_everything_is_examined() -> None:
    assert click_probability(DependentClickModel(eta=0)) == pytest.approx([A1, A2, A3])


def test_the_last_parameter_carries_on_in_lists_of_fifteen() -> None:
    relevance = np.ones((1, 15), np.float32)
    clicks = DependentClickModel().click_probability(relevance, np.ones((1, 15), np.bool_))[0]
    assert clicks[11:] / clicks[10:-1] == pytest.approx([0.06] * 4)
