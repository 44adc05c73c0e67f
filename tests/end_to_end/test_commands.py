"""The commands as a user runs them, each in a process of its own."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from cuolr.policies.model_folder import load_policy

pytestmark = pytest.mark.thorough

# One thread each: these runs are too small for more.
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "cuolr.cli.main", *map(str, arguments)]


def run(*arguments: object) -> str:
    """Run `cuolr`; returns what it prints on stdout."""
    return finish(command(*arguments))


def finish(arguments: list[str]) -> str:
    done = subprocess.run(arguments, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def start(arguments: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(arguments, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small generated data set, and in it a log of clicks on its training queries."""
    folder = tmp_path_factory.mktemp("pipe")
    run("generate", "tiny", "--out", folder / "data", "--train", 80, "--vali", 30, "--test", 30)
    log = ("--click-model", "dcm", "--sessions", 2_000, "--randomised-lists", 1_000, "--out", folder / "log")
    run("simulate", "--data", folder / "data", "--logging", "random", *log)
    return folder


def training(data: Path, out: Path, *more: object, steps: int = 60) -> list[str]:
    settings = ("--set", "learner.hidden=[16, 16]", "--set", "training.validate_every=10", "--batch-size", 32)
    return command("train", data / "log", "--learner", "cql", "--out", out, "--steps", steps, *settings, *more)


@pytest.fixture(scope="module")
def never_stopped(data: Path) -> bytes:
    """The weights of a run that was not stopped."""
    finish(training(data, data / "whole"))
    return arrays_of(data / "whole")


def arrays_of(model: Path) -> bytes:
    (file,) = model.glob("model-*.safetensors")
    return file.read_bytes()


def wait_for_steps(process: subprocess.Popen[str], out: Path, steps: int) -> None:
    """Until that many steps are in the metrics."""
    metrics = out / "metrics.jsonl"
    while not metrics.exists() or len(metrics.read_text().splitlines()) < steps:
        assert process.poll() is None, "it ended before it could be stopped"
        time.sleep(0.01)


def test_from_labelled_data_by_clicks_to_rankings(data: Path, tmp_path: Path) -> None:
    finish(training(data, tmp_path / "model", "--validate", data / "data", "--learner", "sac"))
    evaluated = json.loads(run("evaluate", tmp_path / "model", "--data", data / "data", "--json"))
    assert 0 < evaluated["measures"]["ndcg@10"] <= 1
    assert evaluated["queries"] == 30
    out = tmp_path / "rankings.parquet"
    run("rank", tmp_path / "model", "--candidates", data / "data" / "Fold1" / "test.txt", "--out", out, "--k", 3)
    table = pl.read_parquet(out)
    assert table["query_id"].n_unique() == 30
    assert table["position"].max() == 3


def test_ctrl_c_leaves_a_checkpoint_and_says_so(data: Path, never_stopped: bytes, tmp_path: Path) -> None:
    stopped = start(training(data, tmp_path / "model"))
    wait_for_steps(stopped, tmp_path / "model", 15)
    stopped.send_signal(signal.SIGINT)
    _, messages = stopped.communicate()
    assert stopped.returncode == 130
    assert "stopped after step" in messages
    assert "--resume" in messages
    assert "Traceback" not in messages
    load_policy(tmp_path / "model")
    finish(training(data, tmp_path / "model", "--resume"))
    assert arrays_of(tmp_path / "model") == never_stopped


@pytest.mark.parametrize("steps", [3, 37])
def test_a_killed_run_is_resumed_as_if_it_had_not_been(
    data: Path, never_stopped: bytes, tmp_path: Path, steps: int
) -> None:
    killed = start(training(data, tmp_path / "model"))
    wait_for_steps(killed, tmp_path / "model", steps)
    killed.kill()
    killed.communicate()
    finish(training(data, tmp_path / "model", "--resume"))
    assert arrays_of(tmp_path / "model") == never_stopped
    lines = [json.loads(line) for line in (tmp_path / "model" / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(1, 61))
