"""Three documents to work by hand: grades 2, 0 and 3 on a scale up to 4."""

import numpy as np

from cuolr.clicks.click_model import ClickModel, relevance_of

R1, R2, R3 = 3 / 15, 0.0, 7 / 15
# Attractiveness with the default click noise of 0.1.
A1, A2, A3 = 0.1 + 0.9 * 3 / 15, 0.1, 0.1 + 0.9 * 7 / 15


def click_probability(model: ClickModel) -> list[float]:
    """The model's marginals for the list 2, 0, 3."""
    relevance = relevance_of(np.array([[2, 0, 3]]), max_grade=4)
    marginals: list[float] = model.click_probability(relevance, np.ones((1, 3), np.bool_))[0].tolist()
    return marginals
