from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from cuolr.errors import InputError
from cuolr.policies.model_folder import load_policy
from cuolr.policies.random_policy import RandomPolicy
from cuolr.training.run_folder import RunFolder, check_place, load_checkpoint, save_checkpoint

LEFTOVER = ".checkpoint.safetensors.0123456789ab.unfinished"


STATE = {"step": 3, "seconds": 0.5, "validations": {2: 0.1}, "best": None, "learner": {"step": 3}}


def run_of_three_steps(path: Path) -> RunFolder:
    folder = RunFolder(path, {"learner": "toy"})
    folder.start()
    for step in (1, 2, 3):
        folder.log({"step": step})
    folder.save(STATE)
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
    assert folder.resume() == STATE
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


def some_state() -> dict[str, Any]:
    network = torch.nn.Linear(3, 2)
    optimiser = torch.optim.Adam(network.parameters(), 1e-3)
    network(torch.ones(1, 3)).sum().backward()
    optimiser.step()
    return {
        "network": network.state_dict(),
        "optimiser": optimiser.state_dict(),
        "random": torch.Generator().get_state(),
        "numpy": {"random": np.random.default_rng(1).bit_generator.state, "array": np.arange(6).reshape(2, 3).T},
        "half": torch.ones(2, dtype=torch.bfloat16),
        "twice": [network.weight, network.weight],
        "plain": {"none": None, "yes": True, "number": 0.1, "infinite": -float("inf"), "text": "ä", 7: (1, [2, ()])},
        "empty": torch.empty(0, 4),
    }


def assert_same(left: Any, right: Any) -> None:
    if isinstance(left, torch.Tensor | np.ndarray):
        left, right = torch.as_tensor(left), torch.as_tensor(right)
        assert left.dtype == right.dtype
        torch.testing.assert_close(left, right, rtol=0, atol=0)
    elif isinstance(left, dict):
        assert list(left) == list(right)
        for key, value in left.items():
            assert_same(value, right[key])
    elif isinstance(left, list | tuple):
        assert type(left) is type(right)
        assert len(left) == len(right)
        for one, other in zip(left, right, strict=True):
            assert_same(one, other)
    else:
        assert left == right
        assert type(left) is type(right)


def test_a_state_comes_back_as_it_was(tmp_path: Path) -> None:
    state = some_state()
    save_checkpoint(tmp_path / "state", state)
    assert_same(state, load_checkpoint(tmp_path / "state"))


def test_a_loaded_state_is_independent_of_the_file(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "state", {"weights": torch.ones(3)})
    loaded = load_checkpoint(tmp_path / "state")
    loaded["weights"].zero_()
    save_checkpoint(tmp_path / "state", {"weights": torch.full((3,), 2.0)})
    assert loaded["weights"].tolist() == [0, 0, 0]


def test_what_json_cannot_hold_is_refused_and_the_old_checkpoint_stays(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "state", {"step": 1})
    with pytest.raises(TypeError, match=r"cannot hold PosixPath at '/places/0'"):
        save_checkpoint(tmp_path / "state", {"step": 2, "places": [tmp_path]})
    assert load_checkpoint(tmp_path / "state") == {"step": 1}
    assert [file.name for file in tmp_path.iterdir()] == ["state"]


@pytest.mark.parametrize("place", [0.0, 0.05, 0.3, 0.6, 0.99])
def test_a_changed_byte_is_noticed(tmp_path: Path, place: float) -> None:
    file = tmp_path / "state"
    save_checkpoint(file, some_state())
    content = bytearray(file.read_bytes())
    content[int(place * len(content))] ^= 4
    file.write_bytes(content)
    with pytest.raises(InputError, match=r"state: (expected a|damaged) checkpoint"):
        load_checkpoint(file)


@pytest.mark.parametrize("length", [0, 5, 100, -1])
def test_a_truncated_file_is_refused(tmp_path: Path, length: int) -> None:
    file = tmp_path / "state"
    save_checkpoint(file, some_state())
    file.write_bytes(file.read_bytes()[:length])
    with pytest.raises(InputError, match="damaged checkpoint"):
        load_checkpoint(file)


def test_foreign_files_are_refused(tmp_path: Path) -> None:
    save_file({"weights": torch.ones(2)}, tmp_path / "model.safetensors")
    with pytest.raises(InputError, match="expected format 'cuolr-checkpoint-2'"):
        load_checkpoint(tmp_path / "model.safetensors")
    torch.save({"weights": torch.ones(2)}, tmp_path / "pickled")
    with pytest.raises(InputError, match="damaged checkpoint"):
        load_checkpoint(tmp_path / "pickled")
    with pytest.raises(InputError, match="expected a checkpoint, found a folder"):
        load_checkpoint(tmp_path)
