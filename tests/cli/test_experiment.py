import json
import os
import random
import signal
import subprocess
import sys
import time
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tomli_w

from cuolr.experiments.datasets import Splits, from_folder
from cuolr.experiments.results import Description, Results, name_of
from cuolr.experiments.results_folder import PACKED, ResultsFolder, read_results
from cuolr.experiments.run_cells import Display, RunRequest, RunSummary
from cuolr.logs.log_folder import save_click_log
from tests.cli.conftest import Run
from tests.experiments.made_up import DATA as DATA_OF
from tests.experiments.made_up import made_up_result, table1_like, write_made_up
from tests.experiments.small import SMALL, numbers, real_log

DATA = ("--data", "tiny", "--queries", "30")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(tomli_w.dumps({**SMALL, "seeds": 1}))
    return path


@pytest.mark.thorough
def test_an_experiment_from_a_file_and_only_what_is_left_of_it(run: Run, file: Path, tmp_path: Path) -> None:
    """Also where it is stopped in the middle, again and again."""
    out = tmp_path / "results"
    first = run("experiment", file, "--out", out, *DATA, "--only", "click_model=pbm", "--jobs", 1)
    assert first.status == 0, first.err
    assert "5 cells, 0 already finished" in first.err
    assert len(read_results(out).missing) == 4
    second = run("experiment", file, "--out", out, *DATA, "--jobs", 2, "--json")
    assert second.status == 0, second.err
    told = json.loads(second.out)
    assert (told["cells"], told["finished_before"], told["finished"], told["failed"]) == (9, 5, 4, {})
    assert "9 cells, 5 already finished" in second.err
    assert f"cuolr report {out}" in second.err
    whole, killed = read_results(out), killed_again_and_again(file, tmp_path / "killed")
    assert not whole.missing
    assert not killed.missing
    assert {cell: numbers(result) for cell, result in whole.cells.items()} == {
        cell: numbers(result) for cell, result in killed.cells.items()
    }


def killed_again_and_again(file: Path, out: Path) -> Results:
    """The results of an experiment whose process is killed at three moments, and then is not."""
    command = (sys.executable, "-m", "cuolr", "experiment", str(file), *DATA, "--jobs", "2", "--out", str(out))
    moments = random.Random(1)
    kills = 0
    for _ in range(3):
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        time.sleep(moments.uniform(4, 9))  # from the loading of torch to somewhere among the cells
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
            kills += 1
        process.wait()
    assert kills
    subprocess.run(command, check=True, capture_output=True)
    return read_results(out)


def test_bad_input_is_a_line_and_nothing_is_written(run: Run, file: Path, tmp_path: Path) -> None:
    out = tmp_path / "results"
    for arguments, message in (
        (("table9",), "table1"),
        ((file, "--data", "nowhere"), "web10k-like"),
        ((file, *DATA, "--only", "learner=qcl"), "cql"),
        ((file, *DATA, "--jobs", 0), "jobs: expected"),
        ((file, *DATA, "--steps", 0), "training.steps"),
        ((file, *DATA, "--seeds", 0), "'seeds'"),
        ((file, *DATA, "--fold", 2), "use --only fold=2"),
    ):
        result = run("experiment", *arguments, "--out", out)
        assert result.status == 2
        assert message in result.err
        assert not out.exists()


def test_a_place_that_is_not_ours_is_refused_before_the_data_is_read(run: Run, file: Path, tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "thesis.txt").write_text("precious")
    for place, message in ((tmp_path / "theirs", "not a folder of results"), (file, "found a file")):
        result = run("experiment", file, "--out", place, "--data", "nowhere")
        assert result.status == 2
        assert message in result.err


def test_a_folder_can_be_said_to_be_a_data_set_of_the_paper(tmp_path: Path, tiny: Path) -> None:
    tiny.rename(tmp_path / "mine")
    unnamed = from_folder(tmp_path / "mine", no_reading)
    named = from_folder(tmp_path / "mine", no_reading, "mslr-web10k")
    assert (unnamed.name, unnamed.paper_name) == ("mine", "folder")
    assert named.paper_name == "mslr-web10k"


def no_reading(folder: Path, fold: int | None) -> Splits:
    raise AssertionError(f"{folder} {fold} is not to be read")


def test_the_best_settings_are_written_though_a_trial_failed(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run_made_up(request: RunRequest, display: Display) -> RunSummary:
        folder, cells, experiment = ResultsFolder(request.out), request.experiment.cells([]), request.experiment
        folder.start(Description(experiment, DATA_OF, {}, {cell: name_of(cell, {}) for cell in cells}))
        for number, cell in enumerate(cells):
            if number == 1:
                folder.fail(name_of(cell, {}), "broken")
                continue
            result = made_up_result(cell, {"ndcg@10": np.array([0.25, 0.5])})
            folder.finish(name_of(cell, {}), replace(result, notes={"validation": 0.5 + 0.01 * number}))
        return RunSummary(request.out, len(cells), 0, {cells[1]: "broken"}, 1.0)

    monkeypatch.setattr("cuolr.experiments.run_cells.run_cells", run_made_up)
    result = run("tune", "naive", "--trials", 3, "--click-models", "pbm", "--out", tmp_path)
    assert result.status == 2
    assert "1 cell failed" in result.err
    assert tomllib.loads((tmp_path / "best.toml").read_text())["method"]["naive"]["settings"]
    assert "0.5200" in result.out


@pytest.mark.thorough
def test_tuning_writes_the_best_settings(run: Run, tmp_path: Path) -> None:
    (tmp_path / "space.toml").write_text('[naive]\n"learner.learning_rate" = [1e-3, 1e-2]\n')
    out = tmp_path / "tuned"
    result = run(
        "tune", "naive", "--out", out, *DATA, "--trials", 4, "--steps", 6, "--space", tmp_path / "space.toml",
        "--sessions-per-query", 10, "--click-models", "pbm",
    )  # fmt: skip
    assert result.status == 0, result.err
    assert "naive: only 3 trials" in result.err
    assert len(read_results(out).cells) == 3
    assert "[method.naive]" in (out / "best.toml").read_text()
    assert "(preset)" in result.out
    again = run("tune", "naive", "--out", out, *DATA, "--trials", 4, "--steps", 6, "--space", tmp_path / "space.toml",
                "--sessions-per-query", 10, "--click-models", "pbm", "--json")  # fmt: skip
    trials = json.loads(again.out)["trials"]
    assert [trial["score"] for trial in trials] == sorted((trial["score"] for trial in trials), reverse=True)
    assert {"learner.learning_rate": 0.01} in [trial["settings"] for trial in trials]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log half of whose lists were in random order."""
    save_click_log(real_log(queries=30, sessions=2_000)[0], tmp_path / "LOG")
    return tmp_path / "LOG"


@pytest.mark.thorough
def test_a_method_and_naive_are_judged_by_random_lists(run: Run, log: Path, tmp_path: Path) -> None:
    out = tmp_path / "results"
    command = ("experiment", "real", "--data", log, "--out", out, "--steps", 5, "--only", "method=IPW")
    result = run(*command)
    assert result.status == 0, result.err
    shown = result.out.splitlines()
    assert any(line.split()[:1] == ["IPW"] for line in shown)
    assert any(line.split()[:1] == ["naive"] for line in shown)
    assert "examination, against that of 2,000 lists in random order" in result.out
    assert "outcome, new" in result.out
    assert "naive: " in result.err
    again = run(*command, "--json")
    assert again.err == ""
    content = json.loads(again.out)
    assert [row["method"] for row in content["methods"]] == ["IPW", "LOGGING", "naive"]
    assert json.loads(run("report", out, "--json").out) == content
    assert run("report", out).out == result.out


def test_the_experiment_needs_an_imported_log(run: Run, log: Path, tmp_path: Path) -> None:
    for arguments, message in (
        (("real",), "--data web10k-like: expected the folder of an imported log"),
        (("demo", "--data", "tiny", "--labels", tmp_path / "labels.txt"), "--labels: only with --data LOG"),
        (("real", "--data", log, "--labels", tmp_path / "labels.txt"), "labels.txt: file not found"),
        (("real", "--data", log, "--ray", "auto"), "--ray: not with an imported log"),
        (("real", "--data", log, "--only", "method=IPV"), "IPW"),
    ):
        result = run("experiment", *arguments, "--out", tmp_path / "out")
        assert (result.status, result.err.count("\n")) == (2, 1), result.err
        assert message in result.err


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


@pytest.mark.thorough
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


@pytest.fixture
def packed_results(tmp_path: Path) -> Path:
    experiment = table1_like(measures=["ndcg@10"], grid=[{"method": ["LOGGING", "ORACLE", "naive", "CUOLR(CQL)"]}])
    write_made_up(tmp_path / "results", experiment, (1, 2), queries=30)
    return tmp_path / "results"


@pytest.mark.thorough
def test_a_packed_file_has_the_report_of_the_folder(run: Run, packed_results: Path, tmp_path: Path) -> None:
    file = tmp_path / "all.parquet"
    packed = run("pack", packed_results, file)
    assert packed.status == 0, packed.err
    assert f"wrote {file}: 8 finished cells" in packed.err
    from_folder, from_file = (json.loads(run("report", path, "--json").out) for path in (packed_results, file))
    assert from_file.pop("page") == str(tmp_path / "all-report" / "report.html")
    assert from_folder.pop("page") == str(packed_results / "report" / "report.html")
    assert from_file == from_folder


def test_methods_get_their_new_names(run: Run, packed_results: Path, tmp_path: Path) -> None:
    (tmp_path / "names.toml").write_text('[method]\n"CUOLR(CQL)" = "CQL"\n')
    assert run("pack", packed_results, tmp_path / "all.parquet", "--rename", tmp_path / "names.toml").status == 0
    assert "CQL" in {cell.method for cell in read_results(tmp_path / "all.parquet").cells}


def test_a_file_is_replaced_only_if_asked(run: Run, packed_results: Path) -> None:
    assert run("pack", packed_results, packed_results / PACKED).status == 0
    refused = run("pack", packed_results, packed_results / PACKED)
    assert refused.status == 2
    assert "--overwrite" in refused.err
    assert run("pack", packed_results / PACKED, packed_results / PACKED, "--overwrite").status == 0


def test_a_folder_without_results_is_refused(run: Run, tmp_path: Path) -> None:
    refused = run("pack", tmp_path, tmp_path / "all.parquet")
    assert refused.status == 2
    assert "give the results of an experiment" in refused.err
    assert not (tmp_path / "all.parquet").exists()
