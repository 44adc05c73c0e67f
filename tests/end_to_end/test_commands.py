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

from cuolr.policies.store import load_policy

pytestmark = pytest.mark.thorough


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "cuolr.cli", *map(str, arguments)]


def run(*arguments: object) -> str:
    """Run `cuolr`; returns what it prints on stdout."""
    done = subprocess.run(command(*arguments), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small generated data set, and in it a log of clicks on its training queries."""
    folder = tmp_path_factory.mktemp("pipe")
    run("generate", "tiny", "--out", folder / "data", "--train", 80, "--vali", 30, "--test", 30)
    log = ("--click-model", "dcm", "--sessions", 2_000, "--out", folder / "log")
    run("simulate", "--data", folder / "data", "--logging", "random", *log)
    return folder


def training(data: Path, out: Path, *more: object, steps: int = 60) -> list[str]:
    settings = ("--set", "learner.hidden=[16, 16]", "--set", "training.validate_every=10", "--batch-size", 32)
    return command("train", data / "log", "--out", out, "--steps", steps, *settings, *more)


def finish(arguments: list[str]) -> None:
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


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
    run("rank", tmp_path / "model", "--candidates", data / "data" / "test.txt", "--out", out, "--top", 3)
    table = pl.read_parquet(out)
    assert table["query_id"].n_unique() == 30
    assert table["position"].max() == 3


def test_ctrl_c_leaves_a_checkpoint_and_says_so(data: Path, tmp_path: Path) -> None:
    finish(training(data, tmp_path / "whole"))
    stopped = subprocess.Popen(training(data, tmp_path / "parts"), stderr=subprocess.PIPE, text=True)
    wait_for_steps(stopped, tmp_path / "parts", 15)
    stopped.send_signal(signal.SIGINT)
    _, messages = stopped.communicate()
    assert stopped.returncode == 130
    assert "stopped after step" in messages
    assert "--resume" in messages
    assert "Traceback" not in messages
    load_policy(tmp_path / "parts")
    finish(training(data, tmp_path / "parts", "--resume"))
    models = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "parts")]
    assert models[0] == models[1]


@pytest.mark.parametrize("steps", [3, 14, 37])
def test_a_killed_run_is_resumed_as_if_it_had_not_been(data: Path, tmp_path: Path, steps: int) -> None:
    finish(training(data, tmp_path / "whole"))
    killed = subprocess.Popen(training(data, tmp_path / "parts"), stderr=subprocess.PIPE, text=True)
    wait_for_steps(killed, tmp_path / "parts", steps)
    os.kill(killed.pid, signal.SIGKILL)
    killed.communicate()
    again = "--resume" if (tmp_path / "parts" / "checkpoint.safetensors").exists() else "--overwrite"
    finish(training(data, tmp_path / "parts", again))
    models = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "parts")]
    assert models[0] == models[1]
    lines = [json.loads(line) for line in (tmp_path / "parts" / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(1, 61))
