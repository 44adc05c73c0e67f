"""Pages as people see them: in a real browser, wide and narrow, light and dark."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from playwright.sync_api import Browser, Page

VIEWS: list[tuple[int, Literal["light", "dark"]]] = [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")]
# For a fixture of pages: each width in each colour scheme.
in_every_view = {"params": VIEWS, "ids": [f"{width}-{scheme}" for width, scheme in VIEWS]}


@contextmanager
def opened(
    browser: Browser, address: str, view: tuple[int, Literal["light", "dark"]] = VIEWS[0], **context: Any
) -> Iterator[Page]:
    """A page; whatever it complains of fails the test. Without a network, unless it is said otherwise."""
    width, scheme = view
    settings = {"offline": True, **context}
    of_view = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, **settings)
    page = of_view.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("requestfailed", lambda failed: complaints.append(failed.url))
    page.goto(address)
    yield page
    of_view.close()
    assert complaints == []
