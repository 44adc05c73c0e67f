"""The page as people see it: in a real browser, wide and narrow, light and dark."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from cuolr.experiments.report.report_folder import PAGE, write_report
from cuolr.experiments.report.summary import summarise
from tests.experiments.conftest import opened
from tests.experiments.made_up import table1_like, write_made_up

pytestmark = [pytest.mark.browser, pytest.mark.thorough]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    results = write_made_up(
        tmp_path_factory.mktemp("results"),
        table1_like(),
        (1, 2),
        queries=40,
        fail=lambda cell: "RuntimeError: " + "long" * 200 if cell.method == "DLA" and cell.click_model == "ubm" else "",
        skip=lambda cell: cell.method == "IPW" and cell.click_model == "pbm",
    )
    folder = tmp_path_factory.mktemp("out") / "report"
    write_report(summarise(results), folder)
    return (folder / PAGE).as_uri()


@pytest.fixture(params=[(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")], ids=lambda p: f"{p[0]}-{p[1]}")
def page(request: pytest.FixtureRequest, browser: Browser, address: str) -> Iterator[Page]:
    width, scheme = request.param
    with opened(browser, address, width, scheme) as page:
        yield page


def column(page: Page, number: int) -> list[str]:
    """The values in a column of the first table that is shown."""
    table = page.locator("table.sortable:visible").first
    cells = table.locator("tbody").first.locator(f"tr > :nth-child({number + 1})")
    return [cell.get_attribute("data-value") or "" for cell in cells.all()]


def test_nothing_is_wider_than_the_page(page: Page) -> None:
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for measure in page.locator(".measures label").all():
        measure.click()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_tables_and_plots_are_shown_and_can_be_read(page: Page) -> None:
    assert page.locator("table:visible").count() == 3
    plots = page.locator(".panel svg:visible")
    assert plots.count() == 5 + 1 + 5 + 1
    for plot in plots.all():
        box = plot.bounding_box()
        assert box is not None
        assert box["width"] > 200
        assert box["height"] > 100
    sizes = page.evaluate(
        "[...document.querySelectorAll('.panel svg text')].filter(t => t.getClientRects().length)"
        ".map(t => parseFloat(getComputedStyle(t).fontSize) * t.getScreenCTM().a)"
    )
    assert len(sizes) > 100
    assert min(sizes) > 8


def test_text_stands_out_from_the_page(page: Page) -> None:
    dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    of_page, of_text, of_plot = page.evaluate(
        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color,"
        " getComputedStyle(document.querySelector('.panel svg text')).fill]"
    )

    def brightness(colour: str) -> float:
        return sum(int(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(",")) / 3

    assert of_text == of_plot
    assert (brightness(of_page) < 60) == dark
    assert abs(brightness(of_page) - brightness(of_text)) > 150


def test_a_click_on_a_head_sorts_by_it_and_what_is_missing_stays_below(page: Page) -> None:
    head = page.locator("table.sortable:visible").first.locator("thead button").nth(1)
    before = column(page, 1)
    head.click()
    falling = column(page, 1)
    known = sorted((float(value) for value in before if value), reverse=True)
    assert [float(value) for value in falling if value] == known
    assert falling[-1] == ""
    head.click()
    assert [float(value) for value in column(page, 1) if value] == known[::-1]
    assert column(page, 1)[-1] == ""
    below = page.locator("table.sortable:visible").first.locator("tbody.references th")
    assert below.all_inner_texts() == ["LOGGING", "ORACLE"]


def test_a_click_on_a_measure_shows_its_tables_plots_and_words(page: Page) -> None:
    def heads() -> list[str]:
        return page.locator("h3:visible").all_inner_texts()

    assert any("nDCG@10" in head for head in heads())
    page.locator(".measures label", has_text="ERR@5").click()
    assert "ERR@5" in heads()
    assert "Gap closed, ERR@5" in heads()
    assert not any("nDCG" in head for head in heads())
    assert page.locator(".panel svg:visible").count() == 5 + 1 + 5 + 1
    assert "By ERR@5" in page.locator(".findings").inner_text()


def test_a_measure_can_be_chosen_by_the_keyboard(page: Page) -> None:
    page.locator(".measures input:checked").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("h3:visible").first.inner_text() == "ERR@3"


def test_a_table_that_is_too_wide_scrolls_and_keeps_its_first_column(page: Page) -> None:
    frame = page.locator(".scroll:visible").first
    first = frame.locator("tbody th").first
    before = first.bounding_box()
    frame.evaluate("frame => frame.scrollLeft = 1000")
    after = first.bounding_box()
    assert before is not None
    assert after is not None
    assert after["x"] == pytest.approx(before["x"], abs=1)


def test_paper_gets_everything_on_white_and_within_its_width(page: Page) -> None:
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 718, "height": 1000})  # A4 without its margins
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not page.locator(".measures").is_visible()


def test_the_page_is_one_file(address: str) -> None:
    assert Path(address.removeprefix("file://")).stat().st_size < 3_000_000
