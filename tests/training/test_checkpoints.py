from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from cuolr.errors import InputError
from cuolr.training.run_folder import load_checkpoint, save_checkpoint


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
