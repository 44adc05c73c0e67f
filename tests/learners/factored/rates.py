"""Click rates of a test alone, and rankers that are a feature."""

import numpy as np

from cuolr.data.normalise import UNSCALED
from cuolr.learners.factored.click_rates import ClickRates
from cuolr.policies.linear_policy import LinearPolicy
from cuolr.policies.logging_policy_model import ClonedRanker

N_FEATURES, DOCUMENTS = 6, 4


def by_feature(number: int, factor: float = 1.0) -> ClonedRanker:
    """Scores documents by one feature."""
    weights = np.zeros(N_FEATURES, np.float32)
    weights[number] = factor
    return ClonedRanker(LinearPolicy(weights, UNSCALED))


def random_rates(queries: int, seed: int = 0) -> ClickRates:
    """Queries of four documents with random features, no click, and 1,000 examinations of each document."""
    features = np.random.default_rng(seed).uniform(-1, 1, (queries * DOCUMENTS + 1, N_FEATURES)).astype(np.float32)
    features[-1] = 0
    shape = (queries, DOCUMENTS)
    return ClickRates(
        features=features,
        query=np.arange(queries),
        sessions=np.ones(queries, np.int64),
        documents=np.arange(queries * DOCUMENTS).reshape(shape),
        rewards=np.zeros(shape),
        expected_examinations=np.full(shape, 1_000.0),
        rate=np.zeros(shape),
    )
