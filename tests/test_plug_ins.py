"""Registries; another package adds a learner, a click model, an encoder, a measure and an importer, no line changed.

The folder `plug_in` is a package as pip installs one: a module, and the entry points beside it. Processes that these
tests start have it on their path, which is what installing it does.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cuolr import Ranker
from cuolr.cli.main import main
from cuolr.clicks.click_model import CLICK_MODELS
from cuolr.errors import InputError
from cuolr.logs.importing.importer import IMPORTERS
from cuolr.networks import ENCODERS
from cuolr.policies.policy import POLICIES
from cuolr.registry import Registry
from cuolr.training import LEARNERS
from cuolr.training.base_learner import FitTask, Learner
from tests.data.small_data import candidates_of, random_log

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


@pytest.fixture(scope="module")
def report(results: Path) -> Any:
    """The report on them, where the package is installed."""
    return json.loads(cuolr("report", results, "--json").stdout)


@pytest.fixture(scope="module")
def listed() -> subprocess.CompletedProcess[str]:
    """All names, where the package is installed."""
    return cuolr("list", "--json")


def test_its_names_are_listed(listed: subprocess.CompletedProcess[str]) -> None:
    names = json.loads(listed.stdout)
    assert "popularity" in names["learners"]
    assert "half-blind" in names["click-models"]
    assert "foreign-mean" in names["encoders"]
    assert "top-grade@k" in names["measures"]
    assert "one-list" in names["formats"]
    assert "popularity" not in cuolr("list", "--json", installed=False).stdout


def test_a_plug_in_that_cannot_be_used_is_reported_and_takes_nothing_down(
    listed: subprocess.CompletedProcess[str],
) -> None:
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


@pytest.mark.thorough
def test_its_importer_reads_a_log(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("b a c")
    done = cuolr("import-log", "--format", "one-list", tmp_path / "list.txt", "--out", tmp_path / "LOG", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["report"]["kept"] == {"sessions": 1, "impressions": 3, "clicks": 1}


@pytest.mark.thorough
def test_its_learner_runs_in_an_experiment(report: Any) -> None:
    measured = {(score["method"], score["measure"]): score["mean"] for score in report["scores"]}
    assert 0 < measured["popularity", "ndcg@5"] <= 1
    assert measured["popularity", "top-grade@1"] >= 0
    assert (report["finished"], report["failed"]) == (3, {})


@pytest.mark.thorough
def test_a_report_is_written_without_its_code(results: Path, report: Any, tmp_path: Path) -> None:
    done = cuolr("report", results, "--out", tmp_path / "report", "--json", installed=False)
    assert done.returncode == 0, done.stderr
    assert "popularity" in (tmp_path / "report" / "report.html").read_text()
    assert json.loads(done.stdout)["scores"] == report["scores"]


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


@pytest.mark.thorough
def test_its_model_is_trained_saved_and_ranked_with(tmp_path: Path) -> None:
    main(["generate", "tiny", "--out", str(tmp_path / "data"), "--train", "20", "--vali", "5"])  # has nothing of it
    simulated = ("simulate", "--data", tmp_path / "data", "--click-model", "half-blind", "--sessions", 300)
    assert cuolr(*simulated, "--randomised-lists", 1_000, "--out", tmp_path / "log").returncode == 0
    trained = cuolr("train", tmp_path / "log", "--learner", "popularity", "--out", tmp_path / "model")
    assert trained.returncode == 0, trained.stderr
    assert f"wrote {tmp_path / 'model'}\n" in trained.stderr, "no step: it has none"
    evaluated = cuolr("evaluate", tmp_path / "model", "--data", tmp_path / "data", "--json")
    assert 0 < json.loads(evaluated.stdout)["measures"]["ndcg@10"] <= 1
    # The policy is one of ours, so that the model needs nothing else.
    assert cuolr("evaluate", tmp_path / "model", "--data", tmp_path / "data", installed=False).returncode == 0


def test_a_learner_that_returns_no_policy_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LEARNERS, "_entries", {**LEARNERS._entries})

    @dataclass(frozen=True)
    class NoSettings:
        """None."""

    @LEARNERS.register("weights-only")
    class WeightsOnly(Learner):
        """A mistake: it returns weights."""

        Config = NoSettings

        def fit(self, task: FitTask) -> Any:
            return np.zeros(3)

    with pytest.raises(InputError, match="policy: expected a RankingPolicy, found a ndarray; fit of a learner returns"):
        Ranker("weights-only").fit(random_log(candidates_of(*[3] * 12), sessions=60, k=3))


def test_a_name_can_be_taken_only_once() -> None:
    things: Registry[type] = Registry("thing", package=None)
    things.register("a")(int)
    with pytest.raises(ValueError, match="thing 'a' is already registered, as int"):
        things.register("a")(float)


def test_the_modules_of_a_package_register_themselves() -> None:
    assert {"pbm", "cascade", "dcm", "ccm", "ubm"} <= set(CLICK_MODELS.names())


@pytest.mark.parametrize("registry", [LEARNERS, ENCODERS, POLICIES, CLICK_MODELS, IMPORTERS])
def test_the_names_in_the_source_are_those_that_the_modules_register(registry: Registry[Any]) -> None:
    from_source = set(registry._modules_by_name())
    registry._load()
    assert from_source == {name for name, entry in registry._entries.items() if entry.__module__.startswith("cuolr.")}


@pytest.fixture
def animals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry[type]]:
    """The registry of a package of two modules, one of which has a sub-package above it."""
    registry: Registry[type] = Registry("animal", package="zoo_of_test", variable="ANIMALS")
    (tmp_path / "zoo_of_test" / "cats").mkdir(parents=True)
    (tmp_path / "zoo_of_test" / "__init__.py").write_text("")
    (tmp_path / "zoo_of_test" / "cats" / "__init__.py").write_text("")
    (tmp_path / "zoo_of_test" / "cats" / "lion.py").write_text(
        'from zoo_of_test import ANIMALS\n\n@ANIMALS.register("lion")\nclass Lion: ...\n'
    )
    (tmp_path / "zoo_of_test" / "dog.py").write_text(
        "from zoo_of_test import ANIMALS, OTHERS\n\n"
        '@OTHERS.register("wolf")\n@ANIMALS.register("dog")\nclass Dog: ...\n'
    )
    monkeypatch.syspath_prepend(tmp_path)
    import zoo_of_test  # type: ignore[import-not-found]

    zoo_of_test.ANIMALS, zoo_of_test.OTHERS = registry, Registry("other", package=None)
    yield registry
    for name in [name for name in sys.modules if name.startswith("zoo_of_test")]:
        del sys.modules[name]


def test_listing_names_imports_no_module(animals: Registry[type]) -> None:
    assert animals.names() == ["dog", "lion"]
    assert "zoo_of_test.dog" not in sys.modules


def test_a_look_up_imports_only_the_module_that_registers_the_name(animals: Registry[type]) -> None:
    assert animals.get("lion").__name__ == "Lion"
    assert "zoo_of_test.cats.lion" in sys.modules
    assert "zoo_of_test.dog" not in sys.modules
    assert animals.name_of(animals.get("lion")) == "lion"


def test_an_unknown_name_is_answered_with_the_known_ones(animals: Registry[type]) -> None:
    with pytest.raises(InputError, match=r"unknown animal 'lino' \(did you mean 'lion'\?\); known: dog, lion"):
        animals.get("lino")
