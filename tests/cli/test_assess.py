import json
from dataclasses import replace
from pathlib import Path

import pytest

import cuolr
from cuolr.logs.clicklog import ClickLog
from tests.cli.conftest import Run
from tests.small_log import small_log


@pytest.fixture
def log() -> ClickLog:
    return small_log(300, queries=40)


def test_a_model_saved_from_python_knows_the_log_that_it_was_fitted_on(run: Run, log: ClickLog, tmp_path: Path) -> None:
    ranker = cuolr.Ranker("naive", steps=4, batch_size=8, settings={"learner.hidden": [8, 8]}).fit(log)
    ranker.save(tmp_path / "model")
    cuolr.save_click_log(log, tmp_path / "log")
    cuolr.save_click_log(log.select(slice(0, 250)), tmp_path / "other")
    on_own, on_other = (run("assess", tmp_path / "model", tmp_path / name, "--json") for name in ("log", "other"))
    assert json.loads(on_own.out) == ranker.assess(log).as_dict()
    assert json.loads(on_own.out)["queries"] == 4, "those held out"
    assert json.loads(on_other.out)["queries"] > 30, "all"


def test_what_is_no_model_is_refused(run: Run, log: ClickLog, tmp_path: Path) -> None:
    cuolr.save_click_log(log, tmp_path / "log")
    result = run("assess", tmp_path, tmp_path / "log")
    assert result.status == 2
    assert len(result.err.splitlines()) == 1


def test_a_log_of_other_features_is_refused(run: Run, log: ClickLog, tmp_path: Path) -> None:
    ranker = cuolr.Ranker("naive", steps=2, batch_size=8, settings={"learner.hidden": [8]}).fit(log)
    ranker.save(tmp_path / "model")
    fewer = replace(log.candidates, features=log.candidates.features[:, :3])
    cuolr.save_click_log(replace(log, candidates=fewer), tmp_path / "log")
    result = run("assess", tmp_path / "model", tmp_path / "log")
    assert result.status == 2
    assert "features" in result.err
