"""The page on a click log: its content, and as people see it in a browser."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page

from cuolr.clicks.click_model import click_model
from cuolr.clicks.simulate import Simulation
from cuolr.clicks.simulated_context import SimulatedContext
from cuolr.data.synthetic import generate
from cuolr.examination.curve_intervals import Interval
from cuolr.examination.diagnosis import Diagnosis, diagnose
from cuolr.experiments.report.log_page import log_plots, render_log_page
from cuolr.policies.plackett_luce import StochasticLogger
from cuolr.policies.policy import RankingPolicy
from cuolr.supervised.ranksvm import fit_ranksvm
from tests.data.small_data import candidates_of, log_of
from tests.experiments.conftest import opened

CONTEXTS = (SimulatedContext("device", ("<b>desk&top</b>", "mobile"), (0.6, 0.4), (1.0, 2.0)),)


def simulated(logger: RankingPolicy | StochasticLogger, contexts: tuple[SimulatedContext, ...] = ()) -> Diagnosis:
    """Of three days, with `<` in the names of contexts."""
    log = Simulation(generate("tiny", 60, seed=1), logger, click_model("pbm"), 6_000, contexts=contexts).log()
    times = np.datetime64("2026-11-01") + np.arange(len(log)) // 2_000
    return diagnose(replace(log, timestamp=times.astype("datetime64[us]")))


@pytest.fixture(scope="module")
def one_list() -> Diagnosis:
    found = simulated(fit_ranksvm(generate("tiny", 60, seed=1), 0.05, 1))
    return replace(found, curves=replace(found.curves, logging_policy_weight=Interval(-0.44, -0.5, -0.38)))


@pytest.fixture(scope="module")
def in_contexts() -> Diagnosis:
    return simulated(StochasticLogger(fit_ranksvm(generate("tiny", 60, seed=1), 0.05, 1), 0.5), CONTEXTS)


def test_the_page_says_what_the_diagnosis_says(one_list: Diagnosis) -> None:
    page = render_log_page(one_list, "LOG")
    text = re.sub(r"\s+", " ", page.replace("\N{NO-BREAK SPACE}", " "))
    assert one_list.alarm is not None
    for sentence in (one_list.identifiability.in_words(), one_list.alarm, *one_list.what_to_do):
        assert sentence in text
    for place in one_list.curves.pooled.positions[1:]:
        assert place is not None
        assert f"<td>{place.value:.3f}</td>" in page
        assert f"{place.low:.3f} to {place.high:.3f}" in page
    assert "9 ↔ 10" in page
    assert "<td>6,000" not in page
    assert "<dd>6,000</dd>" in page


def test_the_page_needs_no_other_file(one_list: Diagnosis) -> None:
    page = render_log_page(one_list, "LOG")
    assert not re.search(r'(src|href)="(?!data:,|#)', page)
    assert "@import" not in page
    assert "http" not in re.sub(r'xmlns(:xlink)?="[^"]*"', "", page)


def test_text_of_a_log_is_escaped(in_contexts: Diagnosis) -> None:
    page = render_log_page(in_contexts, "<script>alert(1)</script>")
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "<b>desk" not in page
    assert "&lt;b&gt;desk&amp;top&lt;/b&gt;" in page


def test_each_plot_is_drawn_if_there_is_something_to_show(one_list: Diagnosis, in_contexts: Diagnosis) -> None:
    assert [plot.name for plot in log_plots(in_contexts)] == ["examination", "links", "click-rates", "sessions"]
    assert [plot.name for plot in log_plots(one_list)] == ["examination", "click-rates", "sessions"]
    assert set(log_plots(in_contexts)[0].legend) == {"all sessions", "<b>desk&top</b>", "mobile"}
    without_times = diagnose(log_of(candidates_of(2), [0, 0], [[0, 1], [1, 0]], [[1, 0], [0, 0]]))
    assert [plot.name for plot in log_plots(without_times)] == ["examination", "click-rates"]


def test_a_log_with_hardly_anything_has_a_page() -> None:
    for clicks in (0, 1):
        found = diagnose(log_of(candidates_of(2), [0, 0], [[0], [1]], [[clicks], [0]]))
        assert "Nothing: with one position there is no position bias." in render_log_page(found, "LOG")


@pytest.fixture(params=[(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")], ids=lambda p: f"{p[0]}-{p[1]}")
def page(
    request: pytest.FixtureRequest, browser: Browser, one_list: Diagnosis, in_contexts: Diagnosis, tmp_path: Path
) -> Iterator[Page]:
    """A page with everything."""
    width, scheme = request.param
    both = replace(in_contexts, plans=one_list.plans, choices=one_list.choices)
    (tmp_path / "page.html").write_text(render_log_page(both, "LOG/" + "long" * 40), encoding="utf-8")
    with opened(browser, (tmp_path / "page.html").as_uri(), width, scheme) as page:
        yield page


@pytest.mark.browser
@pytest.mark.thorough
def test_everything_is_shown_and_nothing_is_wider_than_the_page(page: Page) -> None:
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.locator("table:visible").count() == 3
    plots = page.locator(".panel svg:visible")
    assert plots.count() == 5
    for plot in plots.all():
        box = plot.bounding_box()
        assert box is not None
        assert box["width"] > 200
    sizes = page.evaluate(
        "[...document.querySelectorAll('.panel svg text')]"
        ".map(t => parseFloat(getComputedStyle(t).fontSize) * Math.hypot(t.getScreenCTM().a, t.getScreenCTM().b))"
    )
    assert min(sizes) > 6
    of_text, of_plot = page.evaluate(
        "[getComputedStyle(document.body).color, getComputedStyle(document.querySelector('.panel svg text')).fill]"
    )
    assert of_text == of_plot
