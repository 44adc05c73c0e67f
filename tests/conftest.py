"""What all tests share."""

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# The same commit passes or fails the same way each time, however busy the machine is; HYPOTHESIS=search looks for new
# examples.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("search", derandomize=False, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS", "same"))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real data sets that are not part of the project; tests that need them are skipped where they are not found."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the real data sets are not here: expected them in ../shared/data beside the project")
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    """For tests that are marked `browser`."""
    from playwright.sync_api import sync_playwright  # it takes a moment to load

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


@pytest.fixture(scope="session", autouse=True)
def _ctrl_c_is_heard() -> None:
    """A shell starts what it runs in the background deaf to Ctrl-C; tests press it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the user's cache."""
    monkeypatch.setenv("CUOLR_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
