"""Week after week: a time window, a warm start, and the assessment of a model on what came after its training."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import cuolr
from cuolr.logs.clicklog import ClickLog
from cuolr.policies.model_folder import provenance_of
from cuolr.policies.random_policy import RandomPolicy
from tests.cli.conftest import Run

SMALL = ("--learner", "naive", "--steps", 20, "--set", "learner.hidden=[8]")


def two_weeks() -> ClickLog:
    """1,400 sessions in 14 days."""
    train, _, _ = cuolr.generate_splits("tiny", 40, 4, 4, seed=1)
    log = cuolr.simulate(train, RandomPolicy(1), cuolr.click_model("pbm"), sessions=1400, k=3)
    hours = (np.arange(1400) * 14 * 24 / 1400 * 3600).astype("timedelta64[s]")
    return replace(log, timestamp=np.datetime64("2026-11-01", "us") + np.random.default_rng(0).permutation(hours))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    cuolr.save_click_log(two_weeks(), tmp_path / "LOG")
    return tmp_path / "LOG"


@pytest.mark.thorough
def test_a_model_of_the_first_week_is_assessed_on_the_second(run: Run, log: Path, tmp_path: Path) -> None:
    model = tmp_path / "MODEL"
    result = run("train", log, "--out", model, *SMALL, "--until", "2026-11-08")
    assert result.status == 0, result.err
    assert f"{log}: 700 sessions in " in result.err
    trained = provenance_of(model)["log"]
    assert (trained["sessions"], trained["first"]) == (700, "2026-11-01T00:00:00Z")
    assert trained["last"].startswith("2026-11-07T23:")
    result = run("assess", model, log, "--since", "2026-11-08", "--json")
    assert result.status in (0, 10, 11)
    found = json.loads(result.out)
    assert not found["trained_on_these_queries"]
    assert found["sessions_during_training"] == 0
    # The whole log is not the training log, but contains it.
    result = run("assess", model, log)
    assert "sessions from the time of its training" in result.out
    whole = json.loads(run("assess", model, log, "--json").out)
    assert whole["sessions_during_training"] == 700
    assert whole["recommendation"] != "ship"
    # The training sessions by themselves are recognised.
    assert json.loads(run("assess", model, log, "--until", "2026-11-08", "--json").out)["held_out"]
    assert "--since: expected a date" in run("assess", model, log, "--since", "later").err


@pytest.mark.thorough
def test_training_starts_from_last_weeks_model(run: Run, log: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "WEEK1", tmp_path / "WEEK2"
    assert run("train", log, "--out", first, *SMALL, "--until", "2026-11-08").status == 0
    result = run("train", log, "--out", second, *SMALL, "--since", "2026-11-08", "--warm-start", first)
    assert result.status == 0, result.err
    assert f"starting from {first}: naive, trained on 700 sessions until 2026-11-07T23:" in result.err
    recorded = provenance_of(second)["warm_start"]
    assert (recorded["model"], recorded["sessions"], recorded["overlaps"]) == (str(first), 700, False)
    result = run("train", log, "--out", tmp_path / "X", "--warm-start", first)
    assert result.status == 2
    assert "factored cannot start from a model: it estimates everything from the counts of a log" in result.err
    assert "Learners that can: affine, bc, bcq, cm-ipw" in result.err
    assert not (tmp_path / "X").exists()
    result = run("train", log, "--out", tmp_path / "X", *SMALL, "--warm-start", tmp_path / "nothing")
    assert result.status == 2
    assert str(tmp_path / "nothing") in result.err


def test_judgments_are_of_a_time(run: Run, log: Path, tmp_path: Path) -> None:
    few = ("--min-examinations", 0.1, "--json")
    whole = json.loads(run("judgments", log, "--out", tmp_path / "all.csv", *few).out)
    part = json.loads(run("judgments", log, "--out", tmp_path / "day.csv", *few, "--since", "1h").out)
    assert 0 < part["documents"] < whole["documents"]
