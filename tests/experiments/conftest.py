"""A browser for the tests of pages, and results that tests share."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from cuolr.experiments.results_folder import ResultsFolder
from tests.experiments.small import run_small


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of the small experiment, one cell after the other; whoever changes them takes a copy."""
    folder = tmp_path_factory.mktemp("finished")
    run_small(ResultsFolder(folder))
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium")
    if chromium is None:
        missing = "chromium is not here; install it with: apt-get install chromium"
        if os.environ.get("CUOLR_NEEDS_BROWSER") == "1":
            pytest.fail(missing)
        pytest.skip(missing)
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield launched
        launched.close()
