"""A browser for the tests of pages, and results that tests share."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

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


@contextmanager
def opened(browser: Browser, address: str, width: int, scheme: str, offline: bool = True) -> Iterator[Page]:
    """A page at a width and in a colour scheme; whatever it complains of fails the test."""
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if scheme == "dark" else "light",
        offline=offline,
    )
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("requestfailed", lambda failed: complaints.append(failed.url))
    page.goto(address)
    yield page
    context.close()
    assert complaints == []
