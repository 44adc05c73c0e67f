"""A browser, and a model beside a log that all tests of this folder may look at."""

import pytest

from cuolr.browsing.browsed_model import BrowsedModel
from tests.experiments.conftest import browser  # noqa: F401
from tests.small_log import linear_policy, small_log


@pytest.fixture(scope="session")
def browsed() -> BrowsedModel:
    """Six queries in lists of random order."""
    log = small_log(600)
    return BrowsedModel.fit(linear_policy(log), log)
