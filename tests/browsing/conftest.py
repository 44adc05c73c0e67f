"""A model beside a log that all tests of this folder may look at."""

import numpy as np
import pytest

from cuolr.browsing.browsed_model import BrowsedModel
from cuolr.data.normalise import Normaliser
from cuolr.logs.clicklog import ClickLog
from cuolr.policies.linear_policy import LinearPolicy
from tests.small_log import small_log

WEIGHTS = np.array([1.0, 0.0, 0.5, 0.0], np.float32)


def linear_policy(log: ClickLog) -> LinearPolicy:
    """It likes what users click: documents with a high first feature."""
    return LinearPolicy(WEIGHTS, Normaliser.fit("min-max", log.candidates))


@pytest.fixture(scope="session")
def browsed() -> BrowsedModel:
    """Six queries in lists of random order."""
    log = small_log(600)
    return BrowsedModel.fit(linear_policy(log), log)
