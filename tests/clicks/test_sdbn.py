import pytest

from cuolr.clicks.sdbn import SimplifiedDynamicBayesianModel
from tests.clicks.three_documents import A1, A2, A3, R1, R2, click_probability


def test_clicks_on_three_documents() -> None:
    second = 1 - A1 * 0.9 * R1
    third = second * (1 - A2 * 0.9 * R2)
    assert click_probability(SimplifiedDynamicBayesianModel()) == pytest.approx([A1, second * A2, third * A3])


def test_who_is_never_satisfied_examines_everything() -> None:
    assert click_probability(SimplifiedDynamicBayesianModel(satisfaction=0)) == pytest.approx([A1, A2, A3])
