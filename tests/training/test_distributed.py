import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from cuolr.logs.log_folder import save_click_log
from cuolr.training.run_folder import load_checkpoint
from tests.small_log import small_log
from tests.training.distributed_runs import LEARNERS_IN_PARTS, STEPS, summary, train

pytestmark = pytest.mark.thorough
REPOSITORY = Path(__file__).parents[2]


def torchrun(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Start a module in two processes, at a port of their own."""
    command = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m")
    return subprocess.run(
        [*command, *map(str, arguments)],
        cwd=REPOSITORY,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All runs, by two processes; all tests look at these, because it takes seconds to start them."""
    out = tmp_path_factory.mktemp("two")
    done = torchrun("tests.training.distributed_runs", out)
    assert done.returncode == 0, done.stderr
    return out


def results(two: Path, rank: int) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((two / f"{rank}.json").read_text())
    return content


def curve(folder: Path) -> list[dict[str, float]]:
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{name: value for name, value in line.items() if name != "seconds"} for line in lines]


def networks(folder: Path) -> dict[str, Any]:
    learned: dict[str, Any] = load_checkpoint(folder / "checkpoint.safetensors")["state"]["learner"]["networks"]
    return learned


@pytest.mark.parametrize("name", LEARNERS_IN_PARTS)
def test_two_processes_learn_what_one_learns_from_the_whole_batch(name: str, two: Path, tmp_path: Path) -> None:
    result = train(name, tmp_path / "one")
    of_one, of_two = curve(tmp_path / "one"), curve(two / name)
    assert [line["step"] for line in of_two] == list(range(1, STEPS + 1))
    for expected, found in zip(of_one, of_two, strict=True):
        assert found == pytest.approx(expected, rel=2e-5, abs=1e-7)
    outcome, steps, validations = results(two, 0)[name]
    assert [outcome, steps] == summary(result)[:2]
    assert validations == pytest.approx(list(result.validations.values()), rel=2e-5)


def test_all_processes_know_how_every_run_went(two: Path) -> None:
    assert results(two, 0) == results(two, 1)


def test_the_first_process_alone_validates_and_all_stop_early_together(two: Path) -> None:
    assert results(two, 1)["stopped early"] == ["patience", 6, [0.5, 0.4, 0.3]]


def test_an_interrupt_of_one_process_stops_all_and_the_run_can_be_resumed(two: Path) -> None:
    interrupted, resumed, whole = (results(two, 0)[run] for run in ("interrupted", "resumed", "cql"))
    assert interrupted[:2] == ["interrupted", 7]
    assert resumed == whole
    assert curve(two / "interrupted") == curve(two / "cql")
    torch.testing.assert_close(networks(two / "interrupted"), networks(two / "cql"), rtol=0, atol=0)


def test_what_cannot_be_done_together_is_refused_in_one_line(two: Path) -> None:
    assert results(two, 1)["refusals"] == [
        "lightgbm cannot be trained by several processes; run it without torchrun",
        "batch_size: expected at least 2, one list for each process, found 1",
        f"{two / 'naive'}: exists already; continue it with resume, or start again with overwrite",
    ]


def test_the_command_line_writes_one_model_and_speaks_once(tmp_path: Path) -> None:
    save_click_log(small_log(rows=60), tmp_path / "log")
    options = ("--batch-size", 8, "--set", "learner.hidden=[8, 8]", "--set", "training.validate_every=2")
    command = ("cuolr", "train", tmp_path / "log", "--learner", "cql", "--out", tmp_path / "model", *options)
    done = torchrun(*command, "--steps", 4)
    assert done.returncode == 0, done.stderr
    wrote = [done.stderr.count(f"wrote {tmp_path / folder}: ") for folder in ("model", "model/student")]
    assert (done.stderr.count("step 4 of 4: "), wrote) == (1, [1, 1])
    refused = torchrun(*command, "--steps", 6)
    assert refused.stderr.count("error: ") == 1
    resumed = torchrun(*command, "--steps", 6, "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert [line["step"] for line in curve(tmp_path / "model")] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("rank", [0, 1])
def test_no_thread_of_the_group_is_left_that_would_meet_an_interpreter_going_down(rank: int, two: Path) -> None:
    names = (two / f"{rank}.threads").read_text().splitlines()
    if not names:
        pytest.skip("this system does not tell the threads of a process")
    assert [name for name in names if "gloo" in name] == []
