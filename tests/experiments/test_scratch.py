import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from cuolr.experiments.scratch import PREFIX, Scratch


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_it_goes_with_all_that_is_in_it(temporary: Path) -> None:
    with Scratch() as scratch:
        (scratch.path / "log").write_text("sessions")
        assert scratch.path.parent == temporary
    assert not any(temporary.iterdir())


def test_what_is_in_use_and_what_is_not_ours_stays(temporary: Path) -> None:
    (temporary / f"{PREFIX}mine").mkdir()
    with Scratch() as first, Scratch() as second:
        assert first.path.is_dir()
        assert second.path.is_dir()
    assert [folder.name for folder in temporary.iterdir()] == [f"{PREFIX}mine"]


def test_what_a_killed_process_has_left_is_removed_by_the_next(temporary: Path) -> None:
    code = (
        "import tempfile, time; from cuolr.experiments.scratch import Scratch\n"
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
