import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cuolr
from cuolr.errors import InputError, check_format
from cuolr.files import ROWS_AT_A_TIME, atomic_file, atomic_folder, check_files, content_hash


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
