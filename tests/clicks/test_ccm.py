import pytest

from cuolr.clicks.ccm import ClickChainModel
from tests.clicks.three_documents import A1, A2, A3, R1, R2, click_probability


def test_clicks_on_three_documents() -> None:
    second = 0.9 * (1 - A1) + A1 * (0.5 * (1 - R1) + 0.25 * R1)
    third = second * (0.9 * (1 - A2) + A2 * (0.5 * (1 - R2) + 0.25 * R2))
    assert click_probability(ClickChainModel()) == pytest.approx([A1, second * A2, third * A3])


def test_relevance_can_be_the_attractiveness() -> None:
    second = 0.9 * (1 - A1) + A1 * (0.5 * (1 - A1) + 0.25 * A1)
    third = second * (0.9 * (1 - A2) + A2 * (0.5 * (1 - A2) + 0.25 * A2))
    model = ClickChainModel(relevance_is_attractiveness=True)
    assert click_probability(model) == pytest.approx([A1, second * A2, third * A3])


def test_a_user_may_leave_without_a_click() -> None:
    model = ClickChainModel(continuation_after_skip=0)
    second = A1 * (0.5 * (1 - R1) + 0.25 * R1)
    assert click_probability(model)[1] == pytest.approx(second * A2)
