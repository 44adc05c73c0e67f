import numpy as np
import pytest

from cuolr.clicks.cascade import CascadeModel
from tests.clicks.three_documents import A1, A2, A3, click_probability


def test_clicks_on_three_documents() -> None:
    expected = [A1, (1 - A1) * A2, (1 - A1) * (1 - A2) * A3]
    assert click_probability(CascadeModel()) == pytest.approx(expected)


def test_there_is_one_click_at_most() -> None:
    relevance = np.random.default_rng(1).random((10_000, 10), dtype=np.float32)
    clicks, _ = CascadeModel().sample(relevance, np.ones(relevance.shape, np.bool_), np.random.default_rng(2))
    assert clicks.sum(axis=1).max() == 1
