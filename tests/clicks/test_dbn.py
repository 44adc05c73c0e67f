import pytest

from cuolr.clicks.dbn import DynamicBayesianModel
from cuolr.clicks.sdbn import SimplifiedDynamicBayesianModel
from tests.clicks.three_documents import A1, A2, A3, R1, R2, click_probability


def test_clicks_on_three_documents() -> None:
    second = 0.8 * (1 - A1 * 0.7 * R1)
    third = second * 0.8 * (1 - A2 * 0.7 * R2)
    model = DynamicBayesianModel(satisfaction=0.7, perseverance=0.8)
    assert click_probability(model) == pytest.approx([A1, second * A2, third * A3])


def test_with_full_perseverance_it_is_the_simplified_model() -> None:
    simplified = click_probability(SimplifiedDynamicBayesianModel())
    assert click_probability(DynamicBayesianModel(perseverance=1)) == pytest.approx(simplified)
    assert click_probability(DynamicBayesianModel()) != pytest.approx(simplified)
