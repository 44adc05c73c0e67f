"""A disk that fails: each rename, flush, link, new folder and write of a command in turn.

Whatever fails, the command says so in one line, what was there before is still there, nothing half-written is left, and
the next run gives what it gives without a fault.
"""

import errno
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cuolr.cli.main import main

ERRORS = (errno.ENOSPC, errno.EIO, errno.EACCES)
# What a command asks of the system when it writes, other than the writing itself.
CALLS = ("replace", "rename", "fsync", "mkdir")
# Sizes, in bytes, that no file can exceed: how full disks are simulated, for every library that writes.
LIMITS = (0, 200, 3000)


class FailingDisk:
    """Counts calls, and fails the one with this number; 0 = none."""

    def __init__(self, patch: pytest.MonkeyPatch, failing: int = 0) -> None:
        self.calls = 0
        self.failing = failing
        for name in CALLS:
            patch.setattr(os, name, self._counted(getattr(os, name)))

    def _counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            self.calls += 1
            if self.calls == self.failing:
                number = ERRORS[self.failing % len(ERRORS)]
                raise OSError(number, os.strerror(number), str(arguments[0]))
            return call(*arguments, **options)

        return counted


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """No file can be written beyond this size."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def run(*arguments: object) -> int:
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a folder, without those that record times."""
    names = sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())
    return {name: (folder / name).read_bytes() for name in names if not name.endswith(("meta.json", ".jsonl"))}


@pytest.fixture
def inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Data and a table of clicks."""
    monkeypatch.setenv("CUOLR_CACHE", str(tmp_path / "cache"))
    data = tmp_path / "DATA"
    assert run("generate", "tiny", "--out", data, "--train", 12, "--vali", 4, "--test", 4) == 0
    rows = [f"q{s % 3},{s},{p + 1},d{p},{int(s % (p + 2) == 0)}" for s in range(30) for p in range(3)]
    (tmp_path / "clicks.csv").write_text("\n".join(["query_id,session_id,position,doc_id,click", *rows]) + "\n")
    return tmp_path


def commands(inputs: Path, out: Path) -> dict[str, list[object]]:
    simulated = ["--click-model", "pbm", "--sessions", 50, "--k", 3, "--randomised-lists", 100, "--out", out]
    return {
        "generate": ["generate", "tiny", "--train", 3, "--vali", 2, "--test", 2, "--out", out],
        "simulate": ["simulate", "--data", inputs / "DATA", "--logging", "random", *simulated],
        "import-log": ["import-log", inputs / "clicks.csv", "--out", out],
    }


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("generate", marks=pytest.mark.thorough),
        pytest.param("simulate", marks=pytest.mark.thorough),
        "import-log",
    ],
)
def test_a_command_survives_every_fault(name: str, inputs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = inputs / "out" / "OUT"
    command = [*commands(inputs, out)[name], "--overwrite"]
    with pytest.MonkeyPatch.context() as patch:
        disk = FailingDisk(patch)
        assert run(*command) == 0
    expected = contents(out)
    assert disk.calls >= 5
    for failing in range(1, disk.calls + 1):
        capsys.readouterr()
        with pytest.MonkeyPatch.context() as patch:
            FailingDisk(patch, failing)
            status = run(*command)
        check_after_fault(out, status, capsys.readouterr().err, expected)
    for size in LIMITS:
        with largest_file(size):
            status = run(*command)
        check_after_fault(out, status, capsys.readouterr().err, expected)
    assert run(*command) == 0
    assert contents(out) == expected


def check_after_fault(out: Path, status: int, said: str, expected: dict[str, bytes]) -> None:
    """One line if the command failed; the output is there in any case, and nothing else is."""
    problems = [line for line in said.splitlines() if line.startswith("error: ")]
    assert len(problems) == (status == 2), said
    assert "Traceback" not in said
    assert contents(out) == expected, said
    assert [file.name for file in out.parent.iterdir()] == ["OUT"], said
