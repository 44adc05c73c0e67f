import json
import sys
from pathlib import Path

import pytest

import cuolr
from cuolr.cli.cell_options import CellOptions
from cuolr.cli.demo import keep_model, training_on
from cuolr.cli.options import DataOptions
from cuolr.experiments.results_folder import read_results
from cuolr.experiments.run_cells import Display, RunRequest, RunSummary
from cuolr.experiments.spec_file import read_experiment
from tests.cli.conftest import Run
from tests.experiments.made_up import write_made_up
from tests.serving.small_service import ids, serving

SMALL = ("--queries", 30, "--steps", 2)


@pytest.mark.thorough
def test_the_demo_compares_all_methods_and_ends_in_a_report(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "demo"
    result = run("demo", "--out", out, *SMALL)
    assert result.status == 0, result.err
    methods = {"LOGGING", "ORACLE", "naive", "IPW", "CM-IPW", "DLA", "CUOLR(SAC)", "CUOLR(CQL)", "factored"}
    results = read_results(out)
    assert {cell.method for cell in results.cells} == methods
    assert not results.missing
    assert {
        (r.settings["training"]["steps"], r.settings["training"]["batch_size"])
        for r in results.cells.values()
        if r.settings
    } == {(2, 64)}
    for method in methods:
        assert method in result.out
        assert f"{method}, pbm" in result.err, "told as it came"
    page = out / "report" / "report.html"
    assert str(page) in result.out
    assert "CUOLR(CQL)" in page.read_text()
    assert f"next: cuolr browse {out / 'model'} " in result.err
    trained = (out / "model" / "model.json").stat().st_mtime_ns
    again = run("demo", "--out", out, *SMALL)
    assert "16 cells, 16 already finished" in again.err
    assert (out / "model" / "model.json").stat().st_mtime_ns == trained, "the same model is not trained again"
    for method in methods:
        assert f"{method}, pbm" in again.err, "told though it was there"


@pytest.mark.thorough
def test_the_model_of_the_demo_can_be_served_and_browsed(run: Run, tmp_path: Path) -> None:
    experiment = read_experiment("demo").with_changes(steps=2)
    request = CellOptions(tmp_path, "tiny", 30).request(experiment, DataOptions())
    keep_model(request)
    log = cuolr.load_click_log(tmp_path / "log")
    assert log.sessions == 30 * 200
    document = {"id": "d1", "features": {"1": 0.5}}
    with serving(tmp_path / "model") as client:
        answer = client.post("/rank", json={"documents": [document, {"id": "d2", "features": {"2": 0.25}}]})
    assert answer.status_code == 200
    assert sorted(ids(answer.json())) == ["d1", "d2"]
    page = tmp_path / "page.html"
    assert run("browse", tmp_path / "model", tmp_path / "log", "--static", page).status == 0
    assert "What this model would change" in page.read_text()
    for steps, done in ((2, True), (3, False)):
        config = experiment.with_changes(steps).config_of(experiment.cells(())[-1])
        assert config is not None
        assert (training_on(tmp_path / "log", tmp_path / "model", config) is None) == done


def test_the_demo_does_not_touch_a_folder_of_something_else(run: Run, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("precious")
    result = run("demo", "--out", tmp_path, *SMALL)
    assert result.status == 2
    assert "not a folder of results" in result.err
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.txt"]


def test_without_what_draws_plots_the_demo_ends_in_the_table_and_says_how_to_get_the_report(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run_made_up(request: RunRequest, display: Display) -> RunSummary:
        results = write_made_up(request.out, request.experiment, (), 20)
        return RunSummary(request.out, len(results.planned), 0, {}, 1.0)

    monkeypatch.setattr("cuolr.experiments.run_cells.run_cells", run_made_up)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    out = tmp_path / "demo"
    result = run("demo", "--out", out, "--no-model")
    assert result.status == 0, result.err
    assert "CUOLR(CQL)" in result.out
    (said,) = (line for line in result.err.splitlines() if line.startswith("no report"))
    assert "pip install 'cuolr[report]'" in said
    assert f"cuolr report {out}" in said
    assert not (out / "report").exists()
    assert json.loads(run("demo", "--out", out, "--no-model", "--json").out)["page"] is None
    refused = run("report", out)
    assert (refused.status, refused.out) == (2, "")
    assert "plots need matplotlib; install it with: pip install 'cuolr[report]'" in refused.err


@pytest.mark.thorough
def test_cells_that_fail_are_told_after_the_report_on_the_others(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run_made_up(request: RunRequest, display: Display) -> RunSummary:
        broken = {"DLA": "broken"}
        results = write_made_up(request.out, request.experiment, (), 20, fail=lambda cell: broken.get(cell.method, ""))
        return RunSummary(request.out, len(results.planned), 0, results.failed, 1.0)

    monkeypatch.setattr("cuolr.experiments.run_cells.run_cells", run_made_up)
    result = run("demo", "--out", tmp_path / "demo")
    assert result.status == 2
    assert "2 cells failed" in result.err
    assert (tmp_path / "demo" / "report" / "report.html").is_file()
    numbers = json.loads(run("demo", "--out", tmp_path / "demo", "--json").out)
    assert {score["method"] for score in numbers["scores"]} >= {"LOGGING", "naive", "factored"}
    assert len(numbers["failed"]) == 2
