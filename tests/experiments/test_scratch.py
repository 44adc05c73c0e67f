import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from cuolr.experiments import local_workers
from cuolr.experiments.local_workers import PREFIX, Scratch


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_it_goes_with_all_that_is_in_it(temporary: Path) -> None:
    with Scratch() as opened:
        (opened.path / "log").write_text("sessions")
        assert opened.path.parent == temporary
    assert not any(temporary.iterdir())


def test_what_is_in_use_and_what_is_not_ours_stays(temporary: Path) -> None:
    (temporary / f"{PREFIX}mine").mkdir()
    with Scratch() as first, Scratch() as second:
        assert first.path.is_dir()
        assert second.path.is_dir()
    assert [folder.name for folder in temporary.iterdir()] == [f"{PREFIX}mine"]


@pytest.mark.thorough
def test_what_a_killed_process_has_left_is_removed_by_the_next(temporary: Path) -> None:
    code = (
        "import tempfile, time; from cuolr.experiments.local_workers import Scratch\n"
        f"tempfile.tempdir = {str(temporary)!r}; scratch = Scratch(); print(scratch.path, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        left = Path(process.stdout.readline().strip())
        with Scratch():
            assert left.is_dir(), "its process lives"
        process.send_signal(signal.SIGKILL)
    assert left.is_dir()
    with Scratch():
        assert not left.exists()


def test_without_locks_a_folder_is_removed_when_it_is_closed(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_workers, "fcntl", None)
    with Scratch() as first, Scratch() as second:
        assert first.path.is_dir(), "it is too new to be abandoned"
        assert second.path.is_dir()
    assert not any(temporary.iterdir())


def test_without_locks_an_old_folder_is_abandoned(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_workers, "fcntl", None)
    left = Scratch()
    day_before = time.time() - local_workers.SECONDS_WITHOUT_LOCKS - 60
    os.utime(left.path / local_workers.LOCK, (day_before, day_before))
    with Scratch():
        assert not left.path.exists()
    left.close()


@pytest.mark.thorough
def test_the_module_loads_where_there_is_no_fcntl(temporary: Path) -> None:
    code = (
        "import sys; sys.modules['fcntl'] = None\n"
        "from cuolr.experiments.local_workers import Scratch, fcntl\n"
        "assert fcntl is None\n"
        "with Scratch() as scratch: print(scratch.path.is_dir(), scratch.path.parent)"
    )
    environment = {**os.environ, "TMPDIR": str(temporary)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["True", str(temporary)]
