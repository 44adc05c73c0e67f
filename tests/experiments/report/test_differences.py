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
from cuolr.experiments.report.summary import RESAMPLES, summarise
from cuolr.experiments.results import Results
from cuolr.experiments.spec import Cell, Experiment
from cuolr.experiments.spec_file import parse_experiment
from cuolr.random import FIXED_SEED
from tests.experiments.made_up import write_made_up

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
