"""Running the command line as a user does, without starting a process for each test."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from cuolr.cli.main import main
from cuolr.logs.log_folder import save_click_log
from cuolr.policies.model_folder import save_policy
from tests.small_log import linear_policy, small_log


@dataclass(frozen=True)
class Result:
    """What a command printed, and its exit status."""

    status: int
    out: str
    err: str


Run = Callable[..., Result]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run `cuolr` with these arguments."""

    def run_command(*arguments: object) -> Result:
        capsys.readouterr()
        status = 0
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as stop:
            status = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        captured = capsys.readouterr()
        return Result(status, captured.out, captured.err)

    return run_command


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """A linear model, and a log whose users click what it ranks high."""
    log = small_log(300)
    save_click_log(log, tmp_path / "LOG")
    save_policy(linear_policy(log), tmp_path / "MODEL")
    return tmp_path / "MODEL", tmp_path / "LOG"


@pytest.fixture
def tiny(tmp_path: Path, run: Run) -> Path:
    """A small generated data set."""
    folder = tmp_path / "tiny"
    assert run("generate", "tiny", "--out", folder, "--train", 60, "--vali", 20, "--test", 20).status == 0
    return folder
