import csv
import io

import pytest

from cuolr.experiments.report.summary import Summary, summarise
from cuolr.experiments.report.table_files import as_csv, latex, markdown
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
