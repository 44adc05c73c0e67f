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
from cuolr.experiments.results_folder import ResultsFolder, read_results
from cuolr.experiments.run_cells import Display, RunRequest, RunSummary
from tests.cli.conftest import Run
from tests.experiments.made_up import DATA as DATA_OF
from tests.experiments.made_up import made_up_result
from tests.experiments.small import SMALL, numbers

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
