"""One writer per output; leftovers of killed processes go, those of live ones stay."""

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cuolr import output_lock
from cuolr.errors import InputError
from cuolr.files import atomic_file, atomic_folder, check_files, refuse_existing
from cuolr.output_lock import BusyError, Leftover, clean, hold, outputs_held, writing

HEX = "0123456789ab"


@contextmanager
def other_process(code: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that is in the middle of writing; it ends when its input does."""
    script = "from pathlib import Path\nimport sys\nfrom cuolr.files import *\nfrom cuolr.output_lock import *\n"
    script += textwrap.dedent(code)
    with subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
        try:
            yield process
        finally:
            process.kill()


IN_A_FOLDER = """
    with atomic_folder(Path("LOG"), overwrite=True) as folder:
        (folder / "new").write_text("half")
        print("writing", flush=True)
        sys.stdin.read()
"""
IN_A_FILE = """
    with atomic_file(Path("out.csv")) as file:
        file.write_text("half")
        print("writing", flush=True)
        sys.stdin.read()
"""


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_of_two_processes_one_writes_and_the_other_says_who(tmp_path: Path) -> None:
    with other_process(IN_A_FOLDER, tmp_path) as process:
        said = rf"LOG: another process is writing it \(process {process.pid} on .+\)"
        with pytest.raises(BusyError, match=said), atomic_folder(tmp_path / "LOG", overwrite=True):
            raise AssertionError
        with pytest.raises(BusyError), outputs_held():
            refuse_existing(tmp_path / "LOG", overwrite=True)
        with pytest.raises(BusyError), outputs_held():
            check_files([tmp_path / "LOG"], overwrite=True)
        process.communicate()
    assert names(tmp_path) == ["LOG"]
    with atomic_folder(tmp_path / "LOG", overwrite=True) as folder:
        (folder / "newer").write_text("whole")
    assert names(tmp_path / "LOG") == ["newer"]


@pytest.mark.parametrize(("code", "target"), [(IN_A_FOLDER, "LOG"), (IN_A_FILE, "out.csv")])
def test_what_a_killed_process_left_goes_with_the_next_one(code: str, target: str, tmp_path: Path) -> None:
    with other_process(code, tmp_path) as process:
        while_alive = names(tmp_path)
        assert [one.outcome for one in clean(tmp_path)] == ["in use", "in use"]
        assert names(tmp_path) == while_alive
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert names(tmp_path) == while_alive
    with writing(tmp_path / target):
        assert names(tmp_path) == [f".{target}.lock.unfinished"]
    assert names(tmp_path) == []


def test_clean_removes_leftovers_below_a_folder_and_nothing_else(tmp_path: Path) -> None:
    deep = tmp_path / "results" / "cells"
    (deep / f".a.json.{HEX}.unfinished").mkdir(parents=True)
    kept = [".a.json", ".hidden", "a.json", f".a.json.{HEX}x.unfinished", "b.unfinished", f"a.{HEX}.unfinished"]
    for name in (*kept, f".b.json.{HEX}.unfinished"):
        (deep / name).write_text("")
    found = clean(tmp_path)
    assert found == [Leftover(deep / f".{name}.json.{HEX}.unfinished", "removed") for name in "ab"]
    assert names(deep) == sorted(kept)


def test_an_output_that_was_being_replaced_is_put_back_if_the_new_one_is_not_there(tmp_path: Path) -> None:
    # As after a kill between the two renames of a replacement.
    old, new = tmp_path / f".LOG.{HEX}.replaced", tmp_path / f".LOG.{HEX}.unfinished"
    for folder, text in ((old, "old"), (new, "new")):
        folder.mkdir()
        (folder / "file").write_text(text)
    assert clean(tmp_path) == [Leftover(old, "put back"), Leftover(new, "removed")]
    assert (tmp_path / "LOG" / "file").read_text() == "old"
    old.mkdir()
    assert clean(tmp_path) == [Leftover(old, "removed")]
    assert (tmp_path / "LOG" / "file").read_text() == "old"


def test_a_link_to_a_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / f".a.{HEX}.unfinished").write_text("")
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "link").symlink_to(tmp_path / "other", target_is_directory=True)
    (tmp_path / "here" / f".b.{HEX}.unfinished").symlink_to(tmp_path / "other", target_is_directory=True)
    clean(tmp_path / "here")
    assert names(tmp_path / "other") == [f".a.{HEX}.unfinished"]
    assert names(tmp_path / "here") == ["link"]


def test_nothing_is_written_through_a_link_in_place_of_a_lock(tmp_path: Path) -> None:
    """Such as in a folder of results that somebody handed over."""
    (tmp_path / "letter.txt").write_text("dear")
    (tmp_path / "RESULTS").mkdir()
    lock = tmp_path / "RESULTS" / ".report.lock.unfinished"
    lock.symlink_to(tmp_path / "letter.txt")
    with pytest.raises(InputError, match=r"lock.unfinished: is a link.*cuolr clean"), writing(lock.with_name("report")):
        pass
    assert (tmp_path / "letter.txt").read_text() == "dear"
    assert clean(tmp_path / "RESULTS") == [Leftover(lock, "removed")]
    assert (tmp_path / "letter.txt").read_text() == "dear"
    assert names(tmp_path / "RESULTS") == []


def test_a_process_may_write_what_it_holds_and_the_lock_goes_at_the_end(tmp_path: Path) -> None:
    with outputs_held():
        hold(tmp_path / "new" / "out.csv")
        hold(tmp_path / "new" / "out.csv")
        with atomic_file(tmp_path / "new" / "out.csv") as file:
            file.write_text("")
        hold(tmp_path / "never" / "written")
    assert names(tmp_path) == ["new"]
    assert names(tmp_path / "new") == ["out.csv"]
    hold(tmp_path / "x")  # outside of a command nobody releases it
    assert names(tmp_path) == ["new"]


def test_without_locks_nothing_is_removed_that_may_be_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_lock, "fcntl", None)
    (tmp_path / f".out.csv.{HEX}.unfinished").write_text("")
    with atomic_file(tmp_path / "out.csv") as file:
        file.write_text("whole")
    assert names(tmp_path) == [f".out.csv.{HEX}.unfinished", "out.csv"]


def test_a_lock_file_that_was_removed_in_between_is_not_taken_for_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = 0
    lock = output_lock.lock_open_file

    def late(handle: int) -> bool:
        nonlocal taken
        taken += 1
        if taken == 1:  # the earlier holder releases it after it was opened here
            (tmp_path / ".a.lock.unfinished").unlink()
        return lock(handle)

    monkeypatch.setattr(output_lock, "lock_open_file", late)
    with writing(tmp_path / "a"):
        assert names(tmp_path) == [".a.lock.unfinished"]
    assert taken == 2
    assert names(tmp_path) == []
