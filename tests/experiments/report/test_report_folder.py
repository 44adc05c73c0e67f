"""The report, and the page on a click log: their content, and as people see them in a browser."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page

from cuolr.clicks.click_model import click_model
from cuolr.clicks.simulate import Simulation
from cuolr.clicks.simulated_context import SimulatedContext
from cuolr.config import read_toml
from cuolr.data.synthetic import generate
from cuolr.errors import InputError
from cuolr.examination.curve_intervals import Interval
from cuolr.examination.diagnosis import Diagnosis, diagnose
from cuolr.experiments.report.log_page import log_plots, render_log_page
from cuolr.experiments.report.report_folder import write_report
from cuolr.experiments.report.summary import summarise
from cuolr.experiments.spec_file import parse_experiment
from cuolr.policies.plackett_luce import StochasticLogger
from cuolr.policies.policy import RankingPolicy
from cuolr.supervised.ranksvm import fit_ranksvm
from tests.data.small_data import candidates_of, log_of
from tests.experiments.conftest import opened
from tests.experiments.made_up import sweep_like, table1_like, write_made_up

ODD = '<b>odd</b> & "quoted" {{ 7 * 7 }}'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with an odd title, a failed cell and missing ones."""
    results = write_made_up(
        tmp_path_factory.mktemp("results"),
        table1_like(
            title=ODD, measures=["ndcg@5", "ndcg@10"], grid=[{"method": ["naive", "CUOLR(CQL)", "LOGGING", "ORACLE"]}]
        ),
        (1, 2),
        queries=20,
        fail=lambda cell: "ValueError: <script>alert(1)</script>" if cell.fold == 2 and cell.method == "naive" else "",
        skip=lambda cell: cell.fold == 2 and cell.method == "CUOLR(CQL)",
    )
    out = tmp_path_factory.mktemp("out") / "report"
    write_report(summarise(results), out)
    return out


def test_everything_is_in_the_folder(folder: Path) -> None:
    plots = ["click-rate", "gap-closed", "learning-curves", "wins"]
    texts = ["experiment.toml", "report.html", "report.json", "table-1.tex", "tables.csv", "tables.md"]
    assert sorted(file.name for file in folder.iterdir()) == sorted(
        [*texts, *(f"{name}.{kind}" for name in plots for kind in ("png", "svg"))]
    )


def test_the_page_loads_nothing_from_anywhere(folder: Path) -> None:
    page = (folder / "report.html").read_text(encoding="utf-8")
    used = set(re.findall(r'(?:src|href)="([^"#][^"]*)"', page))
    assert {name for name in used if not (folder / name).exists()} == {"data:,"}
    assert "@import" not in page
    assert "url(http" not in page
    assert "<script src" not in page


def test_the_page_explains_its_words(folder: Path) -> None:
    assert "<dt>LOGGING, ORACLE, SKYLINE</dt>" in (folder / "report.html").read_text(encoding="utf-8")


def test_names_and_errors_are_text_on_the_page(folder: Path) -> None:
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "<b>odd" not in page
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "{{ 7 * 7 }}" in page


def test_every_element_of_the_page_is_closed(folder: Path) -> None:
    class Checker(HTMLParser):
        open: list[str]

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            if tag not in ("meta", "link", "input", "br"):
                self.open.append(tag)

        def handle_endtag(self, tag: str) -> None:
            assert self.open.pop() == tag

        def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            """Nothing to close."""

    checker = Checker()
    checker.open = []
    checker.feed((folder / "report.html").read_text(encoding="utf-8"))
    assert checker.open == []


def test_no_id_is_used_twice(folder: Path) -> None:
    ids = re.findall(r' id="([^"]*)"', (folder / "report.html").read_text(encoding="utf-8"))
    assert len(ids) == len(set(ids))


def test_the_configuration_can_be_run_again(folder: Path) -> None:
    assert parse_experiment(read_toml(folder / "experiment.toml")).title == ODD


def test_numbers_are_there_for_programs(folder: Path) -> None:
    numbers = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    assert numbers["title"] == ODD
    assert (numbers["finished"], len(numbers["failed"]), len(numbers["missing"])) == (6, 1, 1)
    assert {score["method"] for score in numbers["scores"]} == {"naive", "CUOLR(CQL)", "LOGGING", "ORACLE"}


@pytest.mark.thorough
def test_an_earlier_report_is_replaced_and_nothing_else(folder: Path, tmp_path: Path) -> None:
    summary = summarise(write_made_up(tmp_path / "results", table1_like(measures=["ndcg@10"]), (1,), queries=20))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match=r"has no report\.json, so it is not replaced"):
        write_report(summary, tmp_path / "mine")
    assert [file.name for file in (tmp_path / "mine").iterdir()] == ["thesis.txt"]
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "report.json").write_text(json.dumps({"files": ["report.json", "gap-closed-7.png"]}))
    (tmp_path / "old" / "gap-closed-7.png").write_text("old")
    write_report(summary, tmp_path / "old")
    assert not (tmp_path / "old" / "gap-closed-7.png").exists()
    assert (tmp_path / "old" / "report.html").is_file()
    write_report(summary, tmp_path / "old")


@pytest.mark.parametrize("numbers", ["{}", "[]", "{", '{"files": ["report.json"]}'])
def test_a_folder_with_a_file_of_somebody_else_is_not_replaced(tmp_path: Path, numbers: str) -> None:
    summary = summarise(write_made_up(tmp_path / "results", table1_like(measures=["ndcg@10"]), (1,), queries=20))
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "report.json").write_text(numbers)
    (tmp_path / "theirs" / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match=r"not replaced, because thesis\.txt does not belong to the report"):
        write_report(summary, tmp_path / "theirs")
    assert (tmp_path / "theirs" / "thesis.txt").read_text() == "years of work"


@pytest.mark.thorough
def test_a_sweep_has_a_report_too(tmp_path: Path) -> None:
    results = write_made_up(tmp_path / "results", sweep_like(measures=["ndcg@10"]), (1, 2), queries=20)
    totals: dict[str, int | None] = {}
    done: dict[str, int] = {}

    def stages(name: str, total: int | None) -> Callable[[int], None]:
        totals[name] = total
        return lambda amount: done.update({name: done.get(name, 0) + amount})

    write_report(summarise(results, stages), tmp_path / "report", stages)
    assert done == totals
    assert list(done) == ["comparing", "drawing"]
    assert "CQL(best)" in (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    assert "CQL(best)" in (tmp_path / "report" / "tables.md").read_text(encoding="utf-8")


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


def test_the_page_needs_no_other_file_and_explains_its_words(one_list: Diagnosis) -> None:
    page = render_log_page(one_list, "LOG")
    assert "<dt>identifiable</dt>" in page
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
    thinnest = f"connect positions with 95 % of the clicks: {in_contexts.identifiability.thinnest_link}."
    assert thinnest in log_plots(in_contexts)[1].caption
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
