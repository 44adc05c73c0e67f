import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from cuolr.data.synthetic import generate
from cuolr.policies.linear_policy import LinearPolicy
from cuolr.policies.model_folder import load_policy, provenance_of
from cuolr.policies.trees_policy import TreesPolicy
from tests.cli.conftest import Run

SETTINGS = ("--set", "learner.rankers.hidden=[8]", "--set", "training.validate_every=5")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set, a log and a trained model with its student."""
    from cuolr.cli.main import main

    folder = tmp_path_factory.mktemp("distil")
    data, log = str(folder / "DATA"), str(folder / "LOG")
    main(["generate", "tiny", "--out", data, "--train", "60", "--vali", "20", "--test", "20"])
    users = ("--click-model", "pbm", "--randomised-lists", "1000")
    main(["simulate", "--data", data, *users, "--sessions", "800", "--out", log])
    main(["train", log, "--out", str(folder / "MODEL"), "--steps", "10", *SETTINGS])
    return folder


@pytest.mark.thorough
def test_a_student_of_trees_is_put_beside_a_model_that_is_not_fast(made: Path) -> None:
    student = load_policy(made / "MODEL" / "student")
    assert isinstance(student, TreesPolicy)
    of_model, of_student = provenance_of(made / "MODEL"), provenance_of(made / "MODEL" / "student")
    assert of_student["log"] == of_model["log"]
    assert 0.5 < of_student["student"]["agreement_of_top_10"] <= 1


@pytest.mark.thorough
def test_without_a_student_the_model_is_the_same(made: Path, run: Run, tmp_path: Path) -> None:
    result = run("train", made / "LOG", "--out", tmp_path / "M", "--steps", 10, *SETTINGS, "--no-student", "--json")
    assert result.status == 0
    assert "student" not in json.loads(result.out)
    assert not (tmp_path / "M" / "student").exists()
    (one,), (other,) = (sorted(path.glob("model-*.safetensors")) for path in (made / "MODEL", tmp_path / "M"))
    assert one.read_bytes() == other.read_bytes()


def test_a_model_of_trees_needs_no_student_and_an_old_one_goes(made: Path, run: Run, tmp_path: Path) -> None:
    shutil.copytree(made / "MODEL", tmp_path / "M")
    train = ("train", made / "LOG", "--out", tmp_path / "M", "--steps", 10, "--learner", "lightgbm")
    assert run(*train).status == 2
    assert json.loads(run(*train, "--overwrite", "--json").out)["student"] is None
    assert not (tmp_path / "M" / "student").exists()


def test_distil_prints_what_is_lost_and_writes_a_model(made: Path, run: Run, tmp_path: Path) -> None:
    distil = ("distil", made / "MODEL", "--data", made / "LOG", "--out", tmp_path / "S", "--to", "linear")
    result = run(*distil, "--labels", made / "DATA", "--split", "vali")
    assert result.status == 0, result.err
    assert "top 10 of the teacher" in result.out
    assert "gain in clicks over production" in result.out
    assert "ndcg@10" in result.out
    student, teacher = load_policy(tmp_path / "S"), load_policy(made / "MODEL")
    assert isinstance(student, LinearPolicy)
    documents = generate("tiny", 20, seed=5).candidates
    shared = [
        np.isin(*lists).mean() for lists in zip(student.rank(documents, 3), teacher.rank(documents, 3), strict=True)
    ]
    assert np.mean(shared) > 0.4
    again = run(*distil)
    assert (again.status, again.out) == (2, "")
    assert "already exists" in again.err


@pytest.mark.thorough
def test_json_has_the_same_and_a_fast_teacher_is_told(made: Path, run: Run, tmp_path: Path) -> None:
    student = made / "MODEL" / "student"
    result = run("distil", student, "--data", made / "LOG", "--out", tmp_path / "S", "--to", "linear", "--json")
    assert f"note: {student} is a single fast model already" in result.err
    found = json.loads(result.out)
    assert found.keys() == {"out", "kind", "agreement_of_top_10", "queries", "held_out_queries", "seconds", "gain"}
    assert (found["kind"], found["queries"], found["held_out_queries"]) == ("linear", 54, 6)
    assert found["gain"]["teacher"].keys() == {"gain", "interval", "recommendation"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("NONE", "--data", "LOG"), "model.json: file not found"),
        (("MODEL", "--data", "NONE"), "folder not found"),
        (("MODEL", "--data", "LOG", "--to", "tree"), "--to: expected one of trees, linear, network"),
        (("MODEL", "--data", "LOG", "--seed", "-1"), "--seed: expected"),
    ],
)
def test_bad_input_is_one_line(
    made: Path, run: Run, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(made)
    result = run("distil", *arguments, "--out", "S")
    assert (result.status, result.out) == (2, "")
    assert message in result.err
    assert len(result.err.splitlines()) == 1
    assert not (made / "S").exists()
