import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.experiments.made_up import table1_like, write_made_up


@pytest.fixture
def results(tmp_path: Path) -> Path:
    experiment = table1_like(measures=["ndcg@10"], grid=[{"method": ["LOGGING", "ORACLE", "naive", "CUOLR(CQL)"]}])
    write_made_up(tmp_path / "results", experiment, (1, 2), queries=30, skip=lambda cell: cell.method == "naive")
    return tmp_path / "results"


def test_the_table_is_printed_with_the_path_of_the_page(run: Run, results: Path) -> None:
    result = run("report", results)
    assert result.status == 0, result.err
    page = results / "report" / "report.html"
    assert result.out.splitlines()[-1] == str(page)
    assert page.is_file()
    rows = {words[0]: words for line in result.out.splitlines() if len(words := line.split()) > 2}
    assert rows["naive"][1] == "missing"
    assert "1 method" not in result.out
    assert "2 methods under 1 click model on MQ2008, 2 folds: 8 cells, of which 2 missing." in result.out


def test_json_has_the_numbers_of_the_page(run: Run, results: Path, tmp_path: Path) -> None:
    result = run("report", results, "--out", tmp_path / "elsewhere", "--json")
    found = json.loads(result.out)
    assert found["page"] == str(tmp_path / "elsewhere" / "report.html")
    scores = {score["method"]: score for score in found["scores"]}
    assert scores["naive"]["mean"] is None
    assert 0.4 < scores["CUOLR(CQL)"]["mean"] < 0.6
    assert scores["CUOLR(CQL)"]["gap_low"] < scores["CUOLR(CQL)"]["gap_closed"] < scores["CUOLR(CQL)"]["gap_high"]
    assert not (results / "report").exists()


def test_a_report_can_be_made_again(run: Run, results: Path) -> None:
    assert run("report", results).status == 0
    assert run("report", results).status == 0


def test_results_of_a_learner_and_a_click_model_that_are_not_installed_are_rendered(run: Run, results: Path) -> None:
    file = results / "experiment.json"
    saved = json.loads(file.read_text())
    saved["experiment"]["method"]["CUOLR(CQL)"]["learner"] = "not-installed"
    saved["experiment"]["click_model"]["pbm"] = {"name": "not-installed-either", "unknown_setting": 3}
    file.write_text(json.dumps(saved))
    refused = run("report", results)
    assert refused.status == 2
    assert "experiment.json: damaged: it does not match its hash" in refused.err
    result = run("report", results, "--no-verify")
    assert result.status == 0, result.err
    assert "CUOLR(CQL)" in result.out
    assert "not-installed" in (results / "report" / "experiment.toml").read_text()


def test_a_folder_without_results_is_told_apart(run: Run, tmp_path: Path) -> None:
    result = run("report", tmp_path)
    assert result.status == 2
    assert "give the results of an experiment" in result.err


def test_a_folder_that_is_no_report_is_not_replaced(run: Run, results: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    result = run("report", results, "--out", tmp_path / "mine")
    assert (result.status, result.out) == (2, "")
    assert "has no report.json, so it is not replaced" in result.err
