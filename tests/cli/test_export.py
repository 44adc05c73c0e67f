import json
import sys
from pathlib import Path

import numpy as np
import pytest

from cuolr.export import EXPORTERS
from cuolr.policies.model_folder import save_policy
from cuolr.policies.policy import RankingPolicy
from cuolr.policies.random_policy import RandomPolicy
from tests.cli.conftest import Run
from tests.export.example_models import documents, linear, trees

onnxruntime = pytest.importorskip("onnxruntime")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    save_policy(trees(), tmp_path / "MODEL")
    return tmp_path / "MODEL"


def test_a_model_is_written_and_its_check_shown(run: Run, model: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "model.onnx"
    result = run("export", model, "--to", "onnx", "--out", out)
    assert result.status == 0, result.err
    assert f"wrote {out}" in result.err
    assert "10,000" in result.out
    assert "pairs in another order" in result.out
    candidates = documents(missing=True)
    (scores,) = onnxruntime.InferenceSession(out).run(["score"], {"features": candidates.features})
    assert np.abs(scores - trees().score(candidates)).max() < 1e-6
    assert [file.name for file in out.parent.iterdir()] == ["model.onnx"]


def test_json_has_the_figures_of_the_check(run: Run, model: Path, tmp_path: Path) -> None:
    result = run("export", model, "--to", "lightgbm", "--out", tmp_path / "m.txt", "--name", "shop", "--json")
    assert result.status == 0, result.err
    found = json.loads(result.out)
    assert (found["target"], found["name"], found["files"]) == ("lightgbm", "shop", [str(tmp_path / "m.txt")])
    assert found["check"]["random_documents"] == 10_000
    assert found["check"]["threshold_documents"] == 4 * len(trees().trees.feature)
    assert found["check"]["max_difference"] < 1e-6
    assert found["features"]["f0"] == "f0"


def test_bad_input_is_one_line(run: Run, model: Path, tmp_path: Path) -> None:
    def error(*arguments: object) -> str:
        result = run("export", *arguments)
        assert (result.status, result.out) == (2, "")
        assert result.err.count("\n") == 1
        return result.err

    out = ("--out", tmp_path / "m.json")
    assert "unknown target 'onx' (did you mean 'onnx'?)" in error(model, "--to", "onx", *out)
    assert "file not found" in error(tmp_path / "none", "--to", "onnx", "--out", tmp_path / "m.onnx")
    assert "expected a name that ends in .onnx, found '.json'" in error(model, "--to", "onnx", *out)
    assert "expected lower-case letters" in error(model, "--to", "elastic", *out, "--name", "../Shop")
    (tmp_path / "m.json").write_text("mine")
    assert "already exists" in error(model, "--to", "elastic", *out)
    assert (tmp_path / "m.json").read_text() == "mine"
    assert run("export", model, "--to", "elastic", *out, "--overwrite").status == 0


@pytest.mark.parametrize("target", EXPORTERS.names())
def test_what_a_target_cannot_hold_is_said_with_what_to_do(run: Run, tmp_path: Path, target: str) -> None:
    policy: RankingPolicy = RandomPolicy(1)
    save_policy(policy, tmp_path / "MODEL")
    result = run("export", tmp_path / "MODEL", "--to", target, "--out", tmp_path / "out.json")
    assert (result.status, result.out) == (2, "")
    assert result.err.startswith(f"error: {tmp_path / 'MODEL'}: {target} cannot hold this model: ")
    assert result.err.endswith(f": cuolr distil {tmp_path / 'MODEL'} --data LOG --to trees --out STUDENT\n")
    assert result.err.count("\n") == 1
    save_policy(trees(), tmp_path / "MODEL" / "student")
    result = run("export", tmp_path / "MODEL", "--to", target, "--out", tmp_path / "out.json")
    assert f"export its student: cuolr export {tmp_path / 'MODEL' / 'student'} --to {target}" in result.err


def test_a_package_that_is_not_installed_is_named(
    run: Run, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for target, package, extra in (("onnx", "onnx", "export"), ("xgboost", "xgboost", "xgboost")):
        monkeypatch.setitem(sys.modules, package, None)
        result = run("export", model, "--to", target, "--out", tmp_path / "m.json", "--overwrite")
        assert result.status == 2
        assert f"pip install 'cuolr[{extra}]'" in result.err


def test_a_model_scaled_within_queries_cannot_be_exported(run: Run, tmp_path: Path) -> None:
    save_policy(linear("query-min-max"), tmp_path / "MODEL")
    result = run("export", tmp_path / "MODEL", "--to", "onnx", "--out", tmp_path / "m.onnx")
    assert "its features are scaled within each query" in result.err
