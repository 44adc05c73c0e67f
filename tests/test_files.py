from pathlib import Path

import pytest

from cuolr.errors import InputError
from cuolr.files import atomic_file, atomic_folder, check_files


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
    assert not list((tmp_path / "deep").iterdir())
    with atomic_folder(target) as unfinished:
        (unfinished / "file").write_text("whole")
        assert not target.exists()
    assert (target / "file").read_text() == "whole"


def test_a_folder_is_replaced_only_when_told(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    target.mkdir()
    (target / "old").write_text("")
    with pytest.raises(InputError, match=r"exists already; give another path, or --overwrite"), atomic_folder(target):
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
        ((tmp_path / "a", tmp_path / "folder" / ".." / "a"), True, "found the same one twice"),
        ((tmp_path / "a", there), False, "there: exists already"),
        ((tmp_path / "a", folder), True, "folder: expected the name of a file, found a folder"),
        ((tmp_path / "a", there / "new" / "b"), True, "expected a folder to write it to, found the file"),
    ):
        with pytest.raises(InputError, match=problem):
            check_files(files, overwrite)
    check_files((there,), overwrite=True)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["folder", "there"]
