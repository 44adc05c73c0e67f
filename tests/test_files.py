import hashlib
import json
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cuolr
from cuolr.config import SettingError
from cuolr.errors import InputError, check_format, load_extra, problems_in
from cuolr.files import (
    ROWS_AT_A_TIME,
    atomic_file,
    atomic_folder,
    check_files,
    content_hash,
    require_file,
)
from cuolr.random import shuffled


def test_a_file_that_fails_half_way_leaves_the_old_one(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_text("old")
    with pytest.raises(ZeroDivisionError), atomic_file(target) as unfinished:
        unfinished.write_text("half")
        raise ZeroDivisionError
    assert target.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "folder"
    with pytest.raises(ZeroDivisionError), atomic_folder(target) as unfinished:
        (unfinished / "file").write_text("half")
        raise ZeroDivisionError
    assert not list(tmp_path.iterdir())
    with atomic_folder(target) as unfinished:
        (unfinished / "file").write_text("whole")
        assert not target.exists()
    assert (target / "file").read_text() == "whole"


def test_a_folder_is_replaced_only_when_told(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    target.mkdir()
    (target / "old").write_text("")
    with (
        pytest.raises(InputError, match=r"already exists; choose another path"),
        atomic_folder(target),
    ):
        pass
    with pytest.raises(InputError, match="has no mark, so it is not replaced"), atomic_folder(target, True, "mark"):
        pass
    assert (target / "old").exists()
    with atomic_folder(target, overwrite=True, ours="old") as unfinished:
        (unfinished / "new").write_text("")
    assert [entry.name for entry in target.iterdir()] == ["new"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder"]


def test_the_folder_that_one_stands_in_can_be_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "folder"
    target.mkdir()
    (target / "old").write_text("")
    monkeypatch.chdir(target)
    with atomic_folder(Path("."), overwrite=True, ours="old") as unfinished:
        (unfinished / "new").write_text("")
    assert [entry.name for entry in target.iterdir()] == ["new"]


def test_several_files_are_checked_before_any_is_written(tmp_path: Path) -> None:
    there, folder = tmp_path / "there", tmp_path / "folder"
    there.write_text("precious")
    folder.mkdir()
    check_files((tmp_path / "a", None, tmp_path / "new" / "b"), overwrite=False)
    for files, overwrite, problem in (
        ((tmp_path / "a", tmp_path / "folder" / ".." / "a"), True, "a: given for two outputs"),
        ((tmp_path / "a", there), False, "there: already exists"),
        ((tmp_path / "a", folder), True, "folder: is a folder; choose the name of a file"),
        ((tmp_path / "a", there / "new" / "b"), True, "cannot be written, because .*there is a file"),
    ):
        with pytest.raises(InputError, match=problem):
            check_files(files, overwrite)
    check_files((there,), overwrite=True)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["folder", "there"]


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_the_hash_is_sha_256_of_the_parts_one_after_the_other(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"xyz" * 1_000_000)
    assert content_hash(b"ab", "ć") == sha256(b"ab" + "ć".encode())
    assert content_hash(tmp_path / "file") == sha256(b"xyz" * 1_000_000)
    assert content_hash({"b": (1, 2), "a": {3: None}}) == sha256(b'{"a": {"3": null}, "b": [1, 2]}')


def test_the_hash_of_an_array_is_that_of_its_shape_type_and_values() -> None:
    values = np.arange(6, dtype=np.int32)
    assert content_hash(values) == sha256(b"((6,), '<i4')" + values.tobytes())
    others = [values.reshape(2, 3), values.astype(np.int64), values.view(np.uint32), values[::-1]]
    assert len({content_hash(other) for other in [values, *others]}) == 5


def test_the_hash_of_an_array_does_not_depend_on_how_it_lies_in_memory() -> None:
    values = np.arange(2 * (ROWS_AT_A_TIME + 1)).reshape(-1, 2)
    assert content_hash(np.asfortranarray(values)) == content_hash(values)
    assert content_hash(np.broadcast_to(np.int64(1), (5,))) == content_hash(np.ones(5, np.int64))


def test_versions_are_known_without_loading_the_packages() -> None:
    program = (
        "import json, sys; from cuolr.files import versions; print(json.dumps([versions(), 'torch' in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    versions, torch_is_loaded = json.loads(done.stdout)
    assert not torch_is_loaded
    assert versions["cuolr"] == cuolr.__version__
    assert versions["numpy"] == np.__version__
    assert {"torch", "polars", "python", "machine"} <= versions.keys()


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        ("cuolr-results-3", "format 'cuolr-results-3' needs a newer cuolr; this version reads 'cuolr-results-2'"),
        ("cuolr-results-10", "needs a newer cuolr"),
        ("cuolr-results-1", "not a file of results of this version of cuolr; expected format 'cuolr-results-2'"),
        ("cuolr-results-3x", "not a file of results of this version"),
        ("cuolr-policy-3", "not a file of results of this version"),
        (3, "not a file of results of this version"),
        (None, "not a file of results of this version"),
    ],
)
def test_a_format_of_a_newer_version_is_told_apart_from_other_files(found: object, problem: str) -> None:
    with pytest.raises(InputError, match=re.escape(problem)) as refused:
        check_format(found, "cuolr-results-2", Path("R.json"), "a file of results")
    assert str(refused.value).startswith("R.json: ")
    check_format("cuolr-results-2", "cuolr-results-2", Path("R.json"), "a file of results")


def test_bad_input_is_a_value_error_as_callers_in_python_expect() -> None:
    with pytest.raises(ValueError, match=r"^a\nb$"):
        raise InputError(["a", "b"])


@pytest.mark.parametrize("error", [InputError(["a", "b"]), SettingError({"rate": "expected 0 to 1, found 2"})])
def test_an_error_comes_whole_out_of_a_worker_process(error: InputError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), copy.problems) == (type(error), error.problems)


def test_each_problem_is_told_with_its_place() -> None:
    with pytest.raises(InputError) as caught, problems_in("log.csv"):
        raise InputError(["row 1: bad", "row 2: worse"])
    assert caught.value.problems == ["log.csv: row 1: bad", "log.csv: row 2: worse"]


def test_a_package_of_an_extra_is_loaded_or_named_with_how_to_install_it() -> None:
    assert load_extra("json", "report", "JSON is not installed").loads("1") == 1
    with pytest.raises(InputError, match=r"^Nope is missing; install it with: pip install 'cuolr\[report\]'$"):
        load_extra("no_such_package_here", "report", "Nope is missing")


@given(n=st.integers(1, 500), seed=st.integers(0, 2**32), number=st.integers(0, 100))
def test_each_number_stands_at_one_place(n: int, seed: int, number: int) -> None:
    assert sorted(shuffled(np.arange(n), n, seed, number).tolist()) == list(range(n))


@given(n=st.integers(2, 10**12), places=st.lists(st.integers(0, 10**12), min_size=1, max_size=20))
def test_a_part_is_the_same_as_in_the_whole(n: int, places: list[int]) -> None:
    part = np.array(places) % n
    whole = np.concatenate([part, np.array([0, n - 1])])
    np.testing.assert_array_equal(shuffled(part, n, 1, 2), shuffled(whole, n, 1, 2)[:-2])


@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_every_number_is_as_likely_at_every_place(n: int) -> None:
    orders = np.stack([shuffled(np.arange(n), n, 3, number) for number in range(3_000)])
    shares = np.stack([(orders == value).mean(axis=0) for value in range(n)])
    assert np.abs(shares - 1 / n).max() < 4.5 * np.sqrt((1 / n) * (1 - 1 / n) / 3_000)


def test_orders_of_another_number_or_seed_differ() -> None:
    first, second, third = (shuffled(np.arange(1_000), 1_000, s, n) for s, n in ((1, 0), (1, 1), (2, 0)))
    assert (first == second).mean() < 0.02
    assert (first == third).mean() < 0.02


def test_a_file_that_is_not_there_is_told_with_one_of_another_format(tmp_path: Path) -> None:
    (tmp_path / "features[1].csv").write_text("")
    (tmp_path / "log.folder").mkdir()
    for name, guess in {
        "features[1].parquet": "features[1].csv",
        "features1.csv": "",
        "log.csv": "",
        "LOG": "",
    }.items():
        with pytest.raises(InputError) as raised:
            require_file(tmp_path / name)
        hint = f" (did you mean '{tmp_path / guess}'?)" if guess else ""
        assert str(raised.value) == f"{tmp_path / name}: file not found{hint}"
