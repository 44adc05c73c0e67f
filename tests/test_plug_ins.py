"""Another package adds a learner, a click model, an encoder, a measure and an importer, without a line changed here.

The folder `plug_in` is a package as pip installs one: a module, and the entry points beside it. Processes that these
tests start have it on their path, which is what installing it does.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PLUG_IN = Path(__file__).parent / "plug_in"
EXPERIMENT = """
title = "A foreign learner"
seeds = 1
k = 5
randomised_lists = 100
measures = ["ndcg@5", "top-grade@1"]
validation = "ndcg@5"

[training]
steps = 2

[[grid]]
click_model = ["half-blind"]
method = ["popularity", "naive", "CQL"]
sessions_per_query = [20]

[method.CQL]
learner = "cql"
settings = { "learner.encoder" = "foreign-mean", "learner.hidden" = [8, 8] }
"""


def cuolr(*arguments: object, installed: bool = True) -> subprocess.CompletedProcess[str]:
    """Run the command line where the package is installed, or where it is not."""
    path = [str(PLUG_IN)] * installed + [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
    command = [sys.executable, "-m", "cuolr", *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of an experiment whose cells ran in worker processes."""
    folder = tmp_path_factory.mktemp("plug-in")
    (folder / "experiment.toml").write_text(EXPERIMENT)
    out = folder / "results"
    data = ("--data", "tiny", "--queries", 20, "--jobs", 2)
    done = cuolr("experiment", folder / "experiment.toml", "--out", out, *data)
    assert done.returncode == 0, done.stderr
    return out


def test_its_names_are_listed() -> None:
    listed = cuolr("list", "--json")
    names = json.loads(listed.stdout)
    assert "popularity" in names["learners"]
    assert "half-blind" in names["click-models"]
    assert "foreign-mean" in names["encoders"]
    assert "top-grade@k" in names["measures"]
    assert "one-list" in names["formats"]
    assert "popularity" not in cuolr("list", "--json", installed=False).stdout


def test_a_plug_in_that_cannot_be_used_is_reported_and_takes_nothing_down() -> None:
    listed = cuolr("list", "--json")
    assert listed.returncode == 0
    warnings = sorted(line for line in listed.stderr.splitlines() if line.startswith("warning: "))
    expected = [
        "learner 'half-made' of the plug-in cuolr_popularity:HalfMade cannot be loaded: TypeError: HalfMade has no",
        "learner 'no-learner' of the plug-in cuolr_popularity:no_learner cannot be loaded: TypeError: expected a",
        "measure 'broken' of the plug-in cuolr_popularity:not_there cannot be loaded",
    ]
    for warning, text in zip(warnings, expected, strict=True):
        assert text in warning
    assert "half-made" not in json.loads(listed.stdout)["learners"]


def test_its_importer_reads_a_log(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("b a c")
    done = cuolr("import-log", "--format", "one-list", tmp_path / "list.txt", "--out", tmp_path / "LOG", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["report"]["kept"] == {"sessions": 1, "impressions": 3, "clicks": 1}


def test_its_learner_runs_in_an_experiment(results: Path) -> None:
    report = json.loads(cuolr("report", results, "--json").stdout)
    measured = {(score["method"], score["measure"]): score["mean"] for score in report["scores"]}
    assert 0 < measured["popularity", "ndcg@5"] <= 1
    assert measured["popularity", "top-grade@1"] >= 0
    assert (report["finished"], report["failed"]) == (3, {})


def test_a_report_is_written_without_its_code(results: Path, tmp_path: Path) -> None:
    done = cuolr("report", results, "--out", tmp_path / "report", "--json", installed=False)
    assert done.returncode == 0, done.stderr
    assert "popularity" in (tmp_path / "report" / "report.html").read_text()
    with_code = json.loads(cuolr("report", results, "--json").stdout)
    assert json.loads(done.stdout)["scores"] == with_code["scores"]


@pytest.mark.thorough
def test_its_learner_runs_on_a_ray_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(PLUG_IN), os.environ.get("PYTHONPATH")))))
    from ray.cluster_utils import Cluster

    (tmp_path / "experiment.toml").write_text(EXPERIMENT)
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        data = ("--data", "tiny", "--queries", 20, "--ray", nodes.address)
        done = cuolr("experiment", tmp_path / "experiment.toml", "--out", tmp_path / "results", *data)
    finally:
        nodes.shutdown()
    assert done.returncode == 0, done.stderr
    assert json.loads(cuolr("report", tmp_path / "results", "--json").stdout)["finished"] == 3


def test_its_model_is_trained_saved_and_ranked_with(tmp_path: Path) -> None:
    assert cuolr("generate", "tiny", "--out", tmp_path / "data", "--train", 20, "--vali", 5).returncode == 0
    simulated = ("simulate", "--data", tmp_path / "data", "--click-model", "half-blind", "--sessions", 300)
    assert cuolr(*simulated, "--randomised-lists", 1_000, "--out", tmp_path / "log").returncode == 0
    trained = cuolr("train", tmp_path / "log", "--learner", "popularity", "--out", tmp_path / "model")
    assert trained.returncode == 0, trained.stderr
    evaluated = cuolr("evaluate", tmp_path / "model", "--data", tmp_path / "data", "--json")
    assert 0 < json.loads(evaluated.stdout)["measures"]["ndcg@10"] <= 1
    # The policy is one of ours, so that the model needs nothing else.
    assert cuolr("evaluate", tmp_path / "model", "--data", tmp_path / "data", installed=False).returncode == 0
