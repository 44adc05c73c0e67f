from pathlib import Path

import pytest

from cuolr.errors import InputError
from cuolr.policies.model_folder import load_policy
from cuolr.policies.random_policy import RandomPolicy
from cuolr.training.run_folder import RunFolder, check_place

LEFTOVER = ".checkpoint.safetensors.0123456789ab.unfinished"


def run_of_three_steps(path: Path) -> RunFolder:
    folder = RunFolder(path, {"learner": "toy"})
    folder.start()
    for step in (1, 2, 3):
        folder.log({"step": step})
    folder.save({"step": 3})
    folder.publish(RandomPolicy(1), {})
    return folder


def names(path: Path) -> set[str]:
    return {file.name.partition("-")[0] for file in path.iterdir()}


def test_what_a_kill_left_unfinished_is_no_reason_to_refuse_a_place(tmp_path: Path) -> None:
    (tmp_path / LEFTOVER).write_text("half")
    check_place(tmp_path, overwrite=False)
    RunFolder(tmp_path, {}).start()
    assert not any(tmp_path.iterdir())


def test_starting_anew_removes_all_but_the_model(tmp_path: Path) -> None:
    folder = run_of_three_steps(tmp_path / "run")
    (folder.path / LEFTOVER).write_text("half")
    RunFolder(folder.path, {}, overwrite=True).start()
    assert names(folder.path) == {"model.json", "model"}
    assert load_policy(folder.path) == RandomPolicy(1)
    folder.publish(RandomPolicy(2), {})
    assert names(folder.path) == {"model.json", "model"}
    assert load_policy(folder.path) == RandomPolicy(2)


def test_resuming_removes_what_a_kill_left_unfinished(tmp_path: Path) -> None:
    folder = run_of_three_steps(tmp_path / "run")
    (folder.path / LEFTOVER).write_text("half")
    assert folder.resume() == {"step": 3}
    assert names(folder.path) == {"model.json", "model", "checkpoint.safetensors", "metrics.jsonl"}


@pytest.mark.parametrize("name", ["letter.txt", "model.safetensors.txt", "letter.unfinished"])
def test_a_folder_with_anything_else_is_left_alone(tmp_path: Path, name: str) -> None:
    folder = run_of_three_steps(tmp_path / "run")
    (folder.path / name).write_text("dear")
    with pytest.raises(InputError, match="run: exists and is not a model"):
        RunFolder(folder.path, {}, overwrite=True).start()
    assert (folder.path / "metrics.jsonl").exists()


def test_a_file_is_no_place_for_a_run(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("dear")
    with pytest.raises(InputError, match="run: exists and is not a model"):
        check_place(tmp_path / "run", overwrite=True)


@pytest.mark.parametrize("line", ["{", "[]", "{}", '{"step": "soon"}', "\N{SNOWMAN}", "3"])
def test_a_bad_line_of_the_metrics_is_named(tmp_path: Path, line: str) -> None:
    folder = run_of_three_steps(tmp_path / "run")
    with (folder.path / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")
    with pytest.raises(InputError, match=r"metrics\.jsonl:4: expected a step and its values, found"):
        folder.resume()
