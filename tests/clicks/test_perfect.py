import pytest

from cuolr.clicks.perfect import PerfectModel
from tests.clicks.three_documents import A1, A2, A3, click_probability


def test_clicks_on_three_documents() -> None:
    assert click_probability(PerfectModel()) == pytest.approx([A1, A2, A3])
