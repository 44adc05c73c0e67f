import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import cuolr
from cuolr.data.normalise import Normaliser
from cuolr.errors import InputError
from cuolr.files import unverified
from cuolr.json_files import MAX_JSON_BYTES
from cuolr.policies.linear_policy import LinearPolicy
from cuolr.policies.model_folder import load_policy, put_policy, save_policy
from cuolr.policies.policy import RankingPolicy
from cuolr.policies.random_policy import RandomPolicy
from cuolr.types import Candidates
from tests.learners.lists import build


def linear_policy(seed: int = 0) -> LinearPolicy:
    weights = np.random.default_rng(seed).standard_normal(4).astype(np.float32)
    return LinearPolicy(weights, Normaliser("min-max", np.full(4, -1.0), np.full(4, 2.0)))


def some_candidates() -> Candidates:
    features = np.random.default_rng(1).standard_normal((9, 4)).astype(np.float32)
    return Candidates(features, np.array([0, 4, 9]), np.array(["a", "b"]))


@pytest.mark.parametrize("policy", [linear_policy(), RandomPolicy(7)])
def test_a_loaded_policy_scores_like_the_saved_one(policy: LinearPolicy | RandomPolicy, tmp_path: Path) -> None:
    save_policy(policy, tmp_path / "model")
    loaded = load_policy(tmp_path / "model")
    assert type(loaded) is type(policy)
    np.testing.assert_array_equal(loaded.score(some_candidates()), policy.score(some_candidates()))


def test_the_description_says_what_it_is_and_where_it_comes_from(tmp_path: Path) -> None:
    save_policy(linear_policy(), tmp_path / "new" / "model", {"data": "tiny", "seed": 3})
    description = json.loads((tmp_path / "new" / "model" / "model.json").read_text())
    assert description["policy"] == "ranksvm"
    assert description["cuolr"] == cuolr.__version__
    assert description["provenance"] == {"data": "tiny", "seed": 3}


def test_saving_again_replaces_the_model_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    save_policy(linear_policy(), tmp_path / "model")
    save_policy(RandomPolicy(1), tmp_path / "model")
    assert load_policy(tmp_path / "model") == RandomPolicy(1)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_folder_of_something_else_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_text("cat")
    with pytest.raises(InputError, match=r"photos: has no model\.json, so it is not replaced"):
        save_policy(RandomPolicy(), tmp_path / "photos")
    assert (tmp_path / "photos" / "cat.jpg").read_text() == "cat"


def test_a_crash_while_saving_leaves_the_old_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_policy(RandomPolicy(1), tmp_path / "model")
    move = os.rename

    def fail_on_the_new_one(path: Path, target: Path) -> None:
        if target.name == "model" and not (path / "model.json").read_text().count('"seed": 1'):
            raise OSError("disk full")
        move(path, target)

    monkeypatch.setattr(os, "rename", fail_on_the_new_one)
    with pytest.raises(OSError, match="disk full"):
        save_policy(RandomPolicy(2), tmp_path / "model")
    assert load_policy(tmp_path / "model") == RandomPolicy(1)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_missing_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nothing/model.json: file not found; expected a saved model"):
        load_policy(tmp_path / "nothing")


def arrays_file(folder: Path) -> Path:
    (file,) = folder.glob("model-*.safetensors")
    return file


def test_a_folder_may_be_given_as_text(tmp_path: Path) -> None:
    save_policy(RandomPolicy(3), str(tmp_path / "model"))
    assert load_policy(str(tmp_path / "model")) == RandomPolicy(3)


@pytest.mark.parametrize("cut", [0, 7, -1])
def test_truncated_arrays_are_refused(tmp_path: Path, cut: int) -> None:
    save_policy(linear_policy(), tmp_path / "model")
    path = arrays_file(tmp_path / "model")
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(InputError, match=r"model: damaged"):
        load_policy(tmp_path / "model")


def test_a_single_changed_bit_is_noticed(tmp_path: Path) -> None:
    save_policy(linear_policy(), tmp_path / "model")
    path = arrays_file(tmp_path / "model")
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"model: damaged"):
        load_policy(tmp_path / "model")


def test_arrays_of_types_that_numpy_does_not_have_are_refused(tmp_path: Path) -> None:
    save_policy(linear_policy(), tmp_path / "model")
    header = b'{"weights":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}}   '
    arrays_file(tmp_path / "model").write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    with unverified(), pytest.raises(InputError, match="expected arrays of types that NumPy has, found BF16"):
        load_policy(tmp_path / "model")


def test_the_arrays_of_another_model_are_refused(tmp_path: Path) -> None:
    save_policy(linear_policy(0), tmp_path / "one")
    save_policy(linear_policy(1), tmp_path / "other")
    arrays_file(tmp_path / "one").write_bytes(arrays_file(tmp_path / "other").read_bytes())
    with pytest.raises(InputError, match=r"one: damaged"):
        load_policy(tmp_path / "one")


@pytest.mark.parametrize("step", ["the arrays", "the description"])
def test_a_kill_while_putting_a_model_in_place_leaves_one_that_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    save_policy(linear_policy(0), tmp_path / "model")
    replace = os.replace

    def kill_after(path: Path, target: Path) -> None:
        replace(path, target)
        if (target.name == "model.json") == (step == "the description"):
            raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", kill_after)
        with pytest.raises(SystemExit):
            put_policy(linear_policy(1), tmp_path / "model")
    expected = linear_policy(0 if step == "the arrays" else 1)
    np.testing.assert_array_equal(load_policy(tmp_path / "model").arrays()["weights"], expected.weights)
    put_policy(linear_policy(2), tmp_path / "model")
    np.testing.assert_array_equal(load_policy(tmp_path / "model").arrays()["weights"], linear_policy(2).weights)
    assert len(list((tmp_path / "model").iterdir())) == 2  # the description and its own arrays


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not valid JSON"),
        ("[]", "not a model of this version of cuolr"),
        ('{"weights": 3}', "not a model of this version of cuolr"),
        (b"\xff\xfe\x00", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
    ],
)
def test_a_foreign_description_is_refused(tmp_path: Path, text: str | bytes, message: str) -> None:
    save_policy(linear_policy(), tmp_path / "model")
    (tmp_path / "model" / "model.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError, match=message):
        load_policy(tmp_path / "model")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"policy": "random"}, "model: damaged"),
        ({"settings": None}, "model: damaged"),
        ({"provenance": {"data": "another"}}, "model: damaged"),
        ({"sha256": "0" * 64}, r"model-0{16}.safetensors: file not found"),
        ({"sha256": "../" * 8 + "0" * 40}, "model.json: damaged: expected 'sha256' to be a hash"),
        ({"sha256": 3}, "model.json: damaged: expected 'sha256' to be a hash"),
    ],
)
def test_a_description_that_does_not_fit_is_refused(tmp_path: Path, change: dict[str, object], message: str) -> None:
    save_policy(linear_policy(), tmp_path / "model")
    path = tmp_path / "model" / "model.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(InputError, match=message):
        load_policy(tmp_path / "model")


def sequential_policy() -> RankingPolicy:
    return build("sac").policy()


def network_policy() -> RankingPolicy:
    return build("dla").policy()


@pytest.mark.parametrize(
    ("make", "change", "message"),
    [
        (linear_policy, {"normalising": "max-min"}, "unknown normalising 'max-min'; known: log-min-max, min"),
        (linear_policy, {"normalising": None}, "unknown normalising 'None'"),
        (linear_policy, {"feature_names": 7}, "does not hold a 'ranksvm' policy"),
        (network_policy, {"hidden": [-3, 2]}, "does not hold a 'network' policy: RuntimeError"),
        (network_policy, {"n_features": "many"}, "does not hold a 'network' policy: ValueError"),
        (sequential_policy, {"hidden": [16]}, "does not hold a 'sequential' policy: IndexError"),
        (sequential_policy, {"hidden": [16, 13]}, "does not hold a 'sequential' policy: ValueError"),
        (sequential_policy, {"n_features": -6}, "does not hold a 'sequential' policy"),
        (sequential_policy, {"encoder": "atention"}, r"unknown encoder 'atention' \(did you mean 'attention'\?\)"),
        (sequential_policy, {"encoder_settings": {"head": 2}}, "unknown setting 'learner.encoder_settings.head'"),
    ],
)
def test_settings_that_no_policy_has_are_refused_in_one_line(
    tmp_path: Path, make: Callable[[], RankingPolicy], change: dict[str, object], message: str
) -> None:
    policy = make()
    settings = policy.settings() | change
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(policy), "settings", lambda _: settings)
        save_policy(policy, tmp_path / "model")
    with pytest.raises(InputError, match=message) as error:
        load_policy(tmp_path / "model")
    (problem,) = error.value.problems
    assert problem.startswith(f"{tmp_path / 'model'}: ")
    assert "\n" not in problem


def test_a_changed_setting_is_noticed(tmp_path: Path) -> None:
    save_policy(linear_policy(), tmp_path / "model")
    path = tmp_path / "model" / "model.json"
    path.write_text(path.read_text().replace('"min-max"', '"log-min-max"'))
    with pytest.raises(InputError, match=r"model: damaged: it does not match its hash; .* --no-verify$"):
        load_policy(tmp_path / "model")
    with unverified():
        assert load_policy(tmp_path / "model").normaliser.settings()["normalising"] == "log-min-max"  # type: ignore[attr-defined]


@pytest.mark.parametrize("pattern", ["model.json", "model-*.safetensors"])
def test_a_pipe_in_a_model_does_not_block(pattern: str, tmp_path: Path) -> None:
    save_policy(linear_policy(), tmp_path / "model")
    (file,) = (tmp_path / "model").glob(pattern)
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(InputError, match="expected a file, found a pipe or a device"):
        load_policy(tmp_path / "model")


def test_settings_that_are_too_large_for_memory_are_not_read(tmp_path: Path) -> None:
    save_policy(linear_policy(), tmp_path / "model")
    os.truncate(tmp_path / "model" / "model.json", MAX_JSON_BYTES + 1)
    with pytest.raises(InputError, match=r"model.json: expected at most 104,857,600 bytes, found 104,857,601$"):
        load_policy(tmp_path / "model")


@pytest.mark.parametrize("pattern", ["model.json", "model-*.safetensors"])
def test_no_link_leads_out_of_a_model(pattern: str, tmp_path: Path) -> None:
    save_policy(linear_policy(), tmp_path / "model")
    (file,) = (tmp_path / "model").glob(pattern)
    file.rename(tmp_path / "outside")
    file.symlink_to(tmp_path / "outside")
    with pytest.raises(InputError, match=f"model: '{file.name}' leads out of the folder; expected the file itself"):
        load_policy(tmp_path / "model")


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"log": "x"}, "log: expected an object, found 'x'"),
        ({"log": {"last": [1]}}, r"log.last: expected a text, found \[1\]"),
        ({"settings": {"learner": 3}}, "settings.learner: expected an object, found 3"),
        ({"settings": {"training": {"held_out": "x"}}}, "settings.training.held_out: expected a number, found 'x'"),
        ({"warm_start": None}, "warm_start: expected an object, found None"),
        ({"training": {"step": 2.5}}, "training.step: expected a whole number, found 2.5"),
    ],
)
def test_what_a_model_records_of_its_origin_has_the_expected_types(
    tmp_path: Path, changed: dict[str, object], problem: str
) -> None:
    save_policy(linear_policy(), tmp_path / "model", changed)
    with pytest.raises(InputError, match=rf"model/model.json: provenance.{problem}$"):
        load_policy(tmp_path / "model")
