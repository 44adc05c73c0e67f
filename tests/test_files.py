from pathlib import Path

import pytest

from cuolr.errors import InputError
from cuolr.files import atomic_file, atomic_folder


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
