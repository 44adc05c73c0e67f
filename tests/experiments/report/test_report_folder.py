import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest

from cuolr.config import read_toml
from cuolr.errors import InputError
from cuolr.experiments.report.report_folder import write_report
from cuolr.experiments.report.summary import summarise
from cuolr.experiments.spec_file import parse_experiment
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
