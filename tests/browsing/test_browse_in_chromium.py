"""The page as people see it: in a real browser, wide and narrow, light and dark, from a file and from a server."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import uvicorn
from playwright.sync_api import Browser, Page

from cuolr.browsing.browse_page import BrowsePage
from cuolr.browsing.browse_server import BrowsePages, browse_server
from cuolr.serving.app import create_app
from cuolr.serving.guard import ONLY_THIS_MACHINE, Access, listen
from cuolr.serving.served_models import ServedModels
from cuolr.serving.service import Service
from tests.browsing.hand_made import ENDING, PICTURE, SCRIPT, hostile_page
from tests.experiments.conftest import opened
from tests.serving.small_service import linear_model

pytestmark = [pytest.mark.browser, pytest.mark.thorough]


@pytest.fixture(scope="module")
def made() -> BrowsePage:
    return hostile_page()


@pytest.fixture(scope="module")
def file(made: BrowsePage, tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text(made.with_all_queries(), encoding="utf-8")
    return path.as_uri()


def shown(browser: Browser, address: str, width: int, scheme: str, offline: bool) -> Iterator[Page]:
    with opened(browser, address, width, scheme, offline) as page:
        yield page
        assert page.title() == f"MODEL{SCRIPT} on LOG{ENDING}", "no script of the log was run"


@pytest.fixture(params=[(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")], ids=lambda p: f"{p[0]}-{p[1]}")
def page(request: pytest.FixtureRequest, browser: Browser, file: str) -> Iterator[Page]:
    width, scheme = request.param
    yield from shown(browser, file, width, scheme, offline=True)


@pytest.fixture
def wide(browser: Browser, file: str) -> Iterator[Page]:
    yield from shown(browser, file, 1280, "light", offline=True)


@contextmanager
def browse_address(pages: BrowsePages) -> Iterator[str]:
    with browse_server(pages, 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
        thread.join()


@contextmanager
def serve_address(pages: BrowsePages, model: Path, access: Access = ONLY_THIS_MACHINE) -> Iterator[str]:
    """The same page under `cuolr serve`, in a server of its own thread."""
    app = create_app(Service(ServedModels.load([model])), access, pages.answer)
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="on"))
    with listen("127.0.0.1", 0) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/browse/"
        server.should_exit = True
        thread.join()


@pytest.fixture(params=["browse", "serve"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Of the page, by either command."""
    pages = BrowsePages(hostile_page(queries=2))
    if request.param == "browse":
        with browse_address(pages) as address:
            yield address
    else:
        with serve_address(pages, linear_model(tmp_path / "m", [1.0])) as address:
            yield address


@pytest.fixture
def served(browser: Browser, address: str) -> Iterator[Page]:
    yield from shown(browser, address, 1280, "light", offline=False)


def open_query(page: Page, name: str) -> None:
    page.locator(".open", has_text=name).first.click()
    page.locator(".card").first.wait_for()


def test_nothing_is_wider_than_the_page_and_names_are_shown_as_they_are(page: Page) -> None:
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert {SCRIPT, PICTURE} <= set(page.locator(".open").all_inner_texts())
    for name in (SCRIPT, PICTURE):
        open_query(page, name)
        assert page.locator("#query h2").inner_text() == name
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.locator(".back").click()


def test_text_stands_out_from_the_page(page: Page) -> None:
    dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")

    def brightness(colour: str) -> float:
        return sum(int(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(",")) / 3

    of_page, of_text = page.evaluate("['backgroundColor', 'color'].map(name => getComputedStyle(document.body)[name])")
    assert (brightness(of_page) < 60) == dark
    assert abs(brightness(of_page) - brightness(of_text)) > 150


def test_the_first_view_has_recommendation_queries_and_curve(wide: Page, made: BrowsePage) -> None:
    found = made.overview.evaluation
    said = wide.locator(".findings").inner_text()
    assert said.lower().startswith(f"{found.recommendation}: {found.reason}".lower())
    assert "1 query of fewer than 10 sessions is hidden" in said
    assert wide.locator(".open").all_inner_texts() == [row.query_id for row in made.overview.rows]
    assert wide.locator(".curve circle").count() == made.browsed.k
    wide.locator(".measures label", has_text="largest gains").click()
    assert wide.locator(".open").first.inner_text() == made.overview.rows[-1].query_id


def test_a_search_finds_queries_and_a_click_opens_one(wide: Page) -> None:
    wide.locator("#search").fill("HATS")
    assert wide.locator(".open").all_inner_texts() == ["Red Hats & more"]
    wide.locator("#search").fill("no such")
    assert wide.locator(".open").count() == 0
    assert "No query contains “no such”" in wide.locator("#table").inner_text()
    wide.locator("#search").fill("")
    open_query(wide, "shoes")
    assert wide.locator("#query h2").inner_text() == "shoes"
    wide.go_back()
    wide.locator(".open").first.wait_for()


def test_both_lists_are_side_by_side_with_a_line_for_each_document(wide: Page, made: BrowsePage) -> None:
    open_query(wide, "shoes")
    view = made.browsed.view(made.browsed.find("shoes"))
    for side, rank in ((".from", "production"), (".to", "model")):
        ranked = sorted((one for one in view.documents if getattr(one, rank)), key=lambda one: getattr(one, rank))
        names = wide.locator(f"{side} .words > span:first-child").all_inner_texts()
        assert names == [one.title for one in ranked]
    assert wide.locator(".lists path").count() == len(view.documents)
    assert set(wide.evaluate("[...document.querySelectorAll('.card img')].map(one => one.naturalWidth)")) == {1}
    boxes = [wide.locator(f"{side} .card").first.bounding_box() for side in (".from", ".to")]
    assert boxes[0] is not None
    assert boxes[1] is not None
    assert boxes[0]["y"] == pytest.approx(boxes[1]["y"])


def test_a_click_on_a_document_shows_its_evidence_and_compares_it_with_another(wide: Page, made: BrowsePage) -> None:
    open_query(wide, "shoes")
    view = made.browsed.view(made.browsed.find("shoes"))
    first, last = view.documents[0], view.documents[-1]
    wide.locator(".to .card").first.click()
    detail = wide.locator(".detail")
    text = detail.inner_text()
    assert first.title in text
    assert f"{first.impressions:,}" in text
    assert first.reason in text
    assert PICTURE in text, "a feature of this name"
    assert wide.locator(".card[aria-pressed=true]").count() == (1 if first.production is None else 2)
    assert first.score is not None
    assert last.score is not None
    assert f"Score {first.score:+.3f}".replace("-", "−") in text
    detail.locator("select").select_option(label=last.title)
    assert f"Score {first.score - last.score:+.3f}".replace("-", "−") in detail.inner_text()


def test_all_of_it_works_by_the_keyboard(wide: Page) -> None:
    wide.keyboard.press("/")
    wide.keyboard.type("shoe")
    wide.keyboard.press("ArrowDown")
    assert wide.evaluate("document.activeElement.textContent") == "shoes"
    wide.keyboard.press("Enter")
    wide.locator(".card").first.wait_for()
    assert wide.evaluate("document.activeElement.tagName") == "H2"
    wide.keyboard.press("ArrowDown")
    wide.keyboard.press("ArrowDown")
    focused = wide.evaluate(
        "[document.activeElement.dataset.side, document.activeElement.getAttribute('aria-pressed')]"
    )
    assert focused == ["model", "true"]
    wide.keyboard.press("Escape")
    wide.locator(".open").first.wait_for()
    assert wide.evaluate("document.activeElement.textContent") == "shoes"
    wide.keyboard.press("Enter")
    wide.locator(".card").first.wait_for()
    wide.keyboard.press("/")
    wide.keyboard.type("red hats & more")
    assert wide.locator("#search").input_value() == "red hats & more", "typing goes on while the first view comes back"
    wide.keyboard.press("Enter")
    wide.locator(".card").first.wait_for()
    assert wide.locator("#query h2").inner_text() == "Red Hats & more"


def test_an_address_with_a_query_opens_it_and_one_without_says_so(wide: Page, file: str) -> None:
    wide.goto(f"{file}#q=shoes")
    wide.locator(".card").first.wait_for()
    wide.goto(f"{file}#q=%3Cb%3Erare")
    wide.locator("#message").wait_for()
    assert wide.locator("#message").inner_text() == "“<b>rare” is not in this page."


def test_a_server_finds_queries_that_the_table_does_not_have(served: Page) -> None:
    listed = served.locator(".open").all_inner_texts()
    assert len(listed) == 2
    other = next(name for name in ("shoes", "Red Hats & more", "%2e#q=?&") if name not in listed)
    served.locator("#search").fill(other)
    served.keyboard.press("Enter")
    served.locator(".card").first.wait_for()
    assert served.locator("#query h2").inner_text() == other
    served.locator(".to .card").first.click()
    assert "expected examinations" in served.locator(".detail").inner_text()


def test_a_server_says_that_a_query_is_hidden_and_goes_on(browser: Browser, address: str) -> None:
    page = browser.new_page()
    page.goto(address)
    page.locator("#search").fill("rare")
    page.keyboard.press("Enter")
    page.locator("#message").wait_for()
    assert "fewer than 10 sessions" in page.locator("#message").inner_text()
    page.locator("#search").fill("")
    open_query(page, page.locator(".open").first.inner_text())
    assert page.evaluate("performance.getEntriesByType('resource').every(one => one.name.startsWith(location.origin))")
    page.close()


def test_with_a_token_the_page_is_shown_to_who_has_it_only(browser: Browser, tmp_path: Path) -> None:
    access, model = Access(token="a token of 16 or more"), linear_model(tmp_path / "m", [1.0])
    with serve_address(BrowsePages(hostile_page(queries=2)), model, access) as address:
        for headers, status in (({}, 401), ({"Authorization": "Bearer a token of 16 or more"}, 200)):
            context = browser.new_context(extra_http_headers=headers)
            page = context.new_page()
            answer = page.goto(address)
            assert answer is not None
            assert (answer.status, "bad_token" in answer.text()) == (status, status == 401)
            if status == 200:
                open_query(page, page.locator(".open").first.inner_text())
            context.close()
