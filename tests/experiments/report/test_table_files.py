import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from cuolr.errors import InputError
from cuolr.evaluation.significance import compare, t_interval
from cuolr.experiments.report.differences import MethodDifference, difference_files, differences
from cuolr.experiments.report.report_folder import make_report
from cuolr.experiments.report.settings import Setting
from cuolr.experiments.report.summary import RESAMPLES, Summary, summarise
from cuolr.experiments.report.table_files import as_csv, latex, markdown
from cuolr.experiments.results import Results
from cuolr.experiments.spec import Cell, Experiment
from cuolr.experiments.spec_file import parse_experiment
from cuolr.random import FIXED_SEED
from tests.experiments.made_up import table1_like, write_made_up


@pytest.fixture(scope="module")
def summary(tmp_path_factory: pytest.TempPathFactory) -> Summary:
    results = write_made_up(
        tmp_path_factory.mktemp("results"),
        table1_like(title="100 % of a_b & c|d"),
        (1, 2, 3),
        queries=60,
        data={"name": "Yahoo", "paper_name": "yahoo-set1"},
        skip=lambda cell: (
            cell.click_model == "ccm" and (cell.method == "IPW" or (cell.method, cell.fold) == ("DLA", 1))
        ),
    )
    return summarise(results)


def row_of(text: str, start: str) -> list[str]:
    line = next(line for line in text.splitlines() if line.startswith(start))
    return [cell.strip() for cell in line.strip("| ").split(" | ")]


@pytest.mark.thorough
def test_markdown_has_a_table_for_each_measure_the_main_one_first(summary: Summary) -> None:
    heads = [line for line in markdown(summary).splitlines() if line.startswith("## ")]
    assert heads == [f"## {name}" for name in ("nDCG@10", "nDCG@3", "nDCG@5", "ERR@3", "ERR@5", "ERR@10")]


def test_markdown_shows_mean_deviation_stars_and_the_papers_number(summary: Summary) -> None:
    text = markdown(summary)
    setting = summary.tables[0].columns.settings[0]
    score = summary.tables[0].scores["CUOLR(CQL)", setting, "ndcg@10"]
    assert score.mark == "**"
    cell = row_of(text, "| CUOLR(CQL)")[1]
    assert cell == f"**{score.mean:.3f}** ± {score.deviation:.3f}\\*\\* [paper 0.753]"


def test_markdown_says_what_is_missing(summary: Summary) -> None:
    text = markdown(summary)
    assert row_of(text, "| IPW")[5] == "*missing*"
    assert row_of(text, "| DLA")[5].split(" [")[0].endswith("(2 of 3 folds)")


def test_markdown_escapes_names(summary: Summary) -> None:
    assert markdown(summary).startswith("# 100 % of a\\_b & c\\|d\n")


def test_markdown_has_the_gap_closed_and_the_papers(summary: Summary) -> None:
    text = markdown(summary)
    gaps = text[text.index("### Gap closed, nDCG@10") :]
    assert "[paper: Yahoo 68 %, WEB10K 59 %]" in row_of(gaps, "| CUOLR(CQL)")[1]
    assert row_of(gaps, "| IPW")[5].startswith("–")


def test_csv_has_a_line_for_each_method_column_and_measure(summary: Summary) -> None:
    rows = list(csv.DictReader(io.StringIO(as_csv(summary))))
    assert len(rows) == 8 * 5 * 6
    found = next(r for r in rows if (r["method"], r["click_model"], r["measure"]) == ("CM-IPW", "dcm", "err@10"))
    score = summary.tables[0].scores["CM-IPW", summary.tables[0].columns.settings[3], "err@10"]
    assert float(found["mean"]) == score.mean
    assert float(found["paper"]) == 0.463
    missing = next(r for r in rows if (r["method"], r["click_model"]) == ("IPW", "ccm"))
    assert missing["mean"] == missing["gap_closed"] == ""


def test_latex_is_laid_out_as_in_the_paper(summary: Summary) -> None:
    text, gaps = parts_of_latex(summary)
    assert r"CLICK MODEL & METHOD & nDCG@3 & nDCG@5 & nDCG@10 & ERR@3 & ERR@5 & ERR@10 \\" in text
    assert text.count(r"\midrule") == 1 + 5
    assert text.count(r"\multirow{6}{*}") == 5
    assert text.count(" & LOGGING & ") == 1
    assert all(word in text for word in (r"\toprule", r"\bottomrule", r"$^{**}$", r"\textbf{", r"\emph{missing}"))
    assert r"\textcolor{gray}{\scriptsize 0.753}" in text
    score = summary.tables[0].scores["CUOLR(CQL)", summary.tables[0].columns.settings[0], "ndcg@10"]
    assert score.gap is not None
    (row,) = [line for line in gaps.splitlines() if line.startswith("CUOLR(CQL) & ")]
    assert row.startswith(rf"CUOLR(CQL) & {100 * score.gap.value:.0f} \% {{\scriptsize({100 * score.gap.low:.0f} to ")
    assert r"\textcolor{gray}{\scriptsize Yahoo 68 \%, WEB10K 59 \%}" in row


def parts_of_latex(summary: Summary) -> tuple[str, str]:
    """The table of values, and that of gaps."""
    values, gaps = latex(summary, summary.tables[0]).split("\n\n")
    return values, gaps


def test_latex_escapes_names_and_closes_what_it_opens(summary: Summary) -> None:
    values, gaps = parts_of_latex(summary)
    assert r"100 \% of a\_b \& c|d" in values
    for text, cells in ((values, 2 + 6), (gaps, 1 + 5)):
        assert text.count("{") == text.count("}")
        rows = [line for line in text.splitlines() if line.endswith(r"\\")]
        assert {line.count(" & ") for line in rows} == {cells - 1}


PBM = Setting("ranksvm", "pbm", 200)
LEVELS = {"naive": 0.4, "DLA": 0.45}


def small(**changes: Any) -> Experiment:
    table: dict[str, Any] = {
        "title": "small",
        "measures": ["ndcg@10"],
        "grid": [{"method": list(LEVELS), "click_model": ["pbm", "dcm"]}],
        "method": {name: {"learner": name.lower()} for name in LEVELS},
        "report": {"differences": {"DLA": "naive"}},
    }
    return parse_experiment(table | changes)


def values(cell: Cell, measure: str, queries: int = 40) -> Any:
    own = np.random.default_rng([cell.fold, cell.seed, *cell.method.encode(), *cell.click_model.encode()])
    return LEVELS[cell.method] + own.normal(0, 0.03, queries) + own.normal(0, 0.05)


def made(folder: Path, **options: Any) -> Results:
    return write_made_up(folder, options.pop("experiment", small()), folds=(), per_query=values, **options)


def per_query(results: Results, method: str) -> Any:
    """[seeds, queries]"""
    cells = sorted(c for c in results.cells if c.method == method and c.click_model == "pbm")
    return np.stack([results.cells[cell].per_query["ndcg@10"] for cell in cells])


def test_a_t_interval_is_that_of_scipy() -> None:
    sample = [0.1, 0.4, -0.2, 0.3]
    expected = stats.ttest_1samp(sample, 0.0).confidence_interval(0.95)
    assert t_interval(sample) == pytest.approx((expected.low, expected.high))
    with pytest.raises(InputError, match="at least 2 values"):
        t_interval([1.0])


def test_queries_are_resampled_with_all_their_seeds_and_runs_have_a_t_interval(tmp_path: Path) -> None:
    results = made(tmp_path)
    (found,) = (d for d in differences(summarise(results)) if d.setting == PBM)
    ours, theirs = per_query(results, "DLA"), per_query(results, "naive")
    assert found.runs == len(ours) == 5
    over_queries = compare(ours.mean(axis=0), theirs.mean(axis=0), FIXED_SEED, RESAMPLES)
    assert found.value == pytest.approx(over_queries.difference)
    assert found.over_queries == pytest.approx(over_queries.interval)
    assert found.over_runs == pytest.approx(t_interval((ours - theirs).mean(axis=1).tolist()))
    # Seeds differ more than queries do here.
    assert found.interval == found.over_runs


@pytest.mark.parametrize(
    ("over_queries", "over_runs", "text"),
    [
        ((0.01, 0.03), (-0.01, 0.05), "+0.020 (-0.010 to +0.050)"),
        ((0.001, 0.039), (0.01, 0.03), "+0.020* (+0.001 to +0.039)"),
        ((0.01, 0.03), None, "+0.020* (+0.010 to +0.030)"),
    ],
)
def test_the_wider_interval_counts(
    over_queries: tuple[float, float], over_runs: tuple[float, float] | None, text: str
) -> None:
    assert MethodDifference("A", "B", PBM, 0.02, over_queries, over_runs, 2).text == text


def test_the_report_has_them_as_a_table_and_as_numbers(tmp_path: Path) -> None:
    made(tmp_path / "results")
    make_report(tmp_path / "results", tmp_path / "report")
    page = (tmp_path / "report" / "differences.md").read_text()
    assert "| method | minus | " in page
    assert "| DLA | naive | +0." in page or "| DLA | naive | -0." in page
    rows = list(csv.DictReader(io.StringIO((tmp_path / "report" / "differences.csv").read_text())))
    assert [row["click_model"] for row in rows] == ["pbm", "dcm"]


def test_without_any_there_is_no_file(tmp_path: Path) -> None:
    assert difference_files(summarise(made(tmp_path, experiment=small(report={})))) == {}


def test_an_unknown_method_is_found_before_anything_is_run() -> None:
    with pytest.raises(InputError, match=r"unknown method in report\.differences 'DAL'"):
        small(report={"differences": {"DAL": "naive"}})
