"""A disk that fails: each rename, flush, link, new folder, opened file and write of a command in turn.

Whatever fails, the command says so in one line, what was there before is still there, nothing half-written is left, and
the next run gives what it gives without a fault.
"""

import builtins
import errno
import io
import json
import os
import resource
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import pytest
import tomli_w
from safetensors import safe_open

from cuolr.cli.main import main
from cuolr.experiments import run_cells
from cuolr.experiments.results_folder import read_results
from cuolr.off_policy.users_of_log import UsersOfLog
from cuolr.policies.model_folder import load_policy
from cuolr.training.run_folder import CHECKPOINT_FILE
from tests.experiments.made_up import table1_like, write_made_up
from tests.experiments.small import SMALL, InTurn, numbers

ERRORS = (errno.ENOSPC, errno.EIO, errno.EACCES)
# What a command asks of the system when it writes, other than the writing itself.
CALLS = ("replace", "rename", "fsync", "mkdir", "link")
# Sizes, in bytes, that no file can exceed: how full disks are simulated, for every library that writes.
LIMITS = (0, 200, 3000)
FULL = 7
# Faults of each command in the fast tests, evenly over its calls; the slow tests have all.
SAMPLE = 4
# Of small learners.
SETTINGS = {
    "factored": ["learner.rankers.hidden=[8]", "learner.click_rates.prior_steps=2"],
    "sac": ["learner.hidden=[8, 8]"],
}

Fault = Literal["error", "full"]


class FailingDisk:
    """Counts calls. The one with a number fails or, if the disk is to be full, no file grows any more from it on.

    Attributes:
        calls: So far.
        failing: The number; 0 = none.
    """

    def __init__(self, patch: pytest.MonkeyPatch, failing: int = 0, fault: Fault = "error") -> None:
        self.calls = 0
        self.failing = failing
        self.fault = fault
        for name in CALLS:
            patch.setattr(os, name, self._counted(getattr(os, name)))
        for module in (builtins, io):
            patch.setattr(module, "open", self._counted(open, only_writing=True))

    def _counted(self, call: Callable[..., Any], only_writing: bool = False) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            mode = options.get("mode", arguments[1] if len(arguments) > 1 else "r")
            if only_writing and (not isinstance(mode, str) or not set(mode) & set("wax+")):
                return call(*arguments, **options)
            self.calls += 1
            if self.calls == self.failing:
                if self.fault == "error":
                    number = ERRORS[self.failing % len(ERRORS)]
                    raise OSError(number, os.strerror(number), str(arguments[0]))
                resource.setrlimit(resource.RLIMIT_FSIZE, (FULL, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
            return call(*arguments, **options)

        return counted


@contextmanager
def largest_file(size: int | None = None) -> Iterator[None]:
    """No file can be written beyond this size; None = any size. Ends the full disk, too."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    if size is not None:
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


def run_with(fault: tuple[int, Fault], *arguments: object) -> int:
    """Run a command on a failing disk."""
    with largest_file(), pytest.MonkeyPatch.context() as patch:
        FailingDisk(patch, *fault)
        return run(*arguments)


def calls_of(*arguments: object) -> int:
    """How often a command that succeeds can fail."""
    with pytest.MonkeyPatch.context() as patch:
        disk = FailingDisk(patch)
        assert run(*arguments) == 0
    return disk.calls


def faults(calls: int, which: str) -> list[tuple[int, Fault]]:
    """All faults of a command, or a sample: first and last calls are among it."""
    kinds: tuple[Fault, ...] = ("error", "full")
    if which == "all":
        return [(number, kind) for number in range(1, calls + 1) for kind in kinds]
    numbers = sorted({round(1 + i * (calls - 1) / (SAMPLE - 1)) for i in range(SAMPLE)})
    return [(number, kinds[i % 2]) for i, number in enumerate(numbers)]


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a folder, without those that record times."""
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    timed = ("meta.json", ".jsonl", "model.json", "report.json", "report.html", ".svg", ".pdf", "assessment.json")
    return {str(file.relative_to(folder)): content_of(file) for file in files if not file.name.endswith(timed)}


def content_of(file: Path) -> bytes:
    """The bytes of a file; of a checkpoint, its tensors: beside them it records times."""
    if file.name != CHECKPOINT_FILE:
        return file.read_bytes()
    with safe_open(file, framework="np") as checkpoint:
        return b"".join(name.encode() + checkpoint.get_tensor(name).tobytes() for name in sorted(checkpoint.keys()))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data, a table of clicks, a log, a linear model, results and the file of an experiment."""
    folder = tmp_path_factory.mktemp("faults")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUOLR_CACHE", str(folder / "cache"))
        data = folder / "DATA"
        assert run("generate", "tiny", "--out", data, "--train", 12, "--vali", 4, "--test", 4) == 0
        clicks = ("--click-model", "pbm", "--sessions", 200, "--k", 3, "--out", folder / "LOG")
        assert run("simulate", "--data", data, "--logging", "random", *clicks) == 0
        assert run("oracle", "--data", data, "--out", folder / "MODEL") == 0
    rows = [f"q{s % 3},{s},{p + 1},d{p},{int(s % (p + 2) == 0)}" for s in range(30) for p in range(3)]
    (folder / "clicks.csv").write_text("\n".join(["query_id,session_id,position,doc_id,click", *rows]) + "\n")
    experiment = table1_like(measures=["ndcg@10"], grid=[{"method": ["LOGGING", "naive"]}])
    write_made_up(folder / "RESULTS", experiment, (1,), queries=5)
    grid = [{"click_model": ["pbm"], "method": ["LOGGING", "naive"], "sessions_per_query": [10]}]
    (folder / "small.toml").write_text(tomli_w.dumps({**SMALL, "seeds": 1, "grid": grid}))
    return folder


@pytest.fixture
def inputs(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of them, with a cache of its own."""
    monkeypatch.setenv("CUOLR_CACHE", str(tmp_path / "cache"))
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path


def commands(inputs: Path, out: Path) -> dict[str, list[object]]:
    """Commands whose output is whole or absent."""
    simulated = ["--click-model", "pbm", "--sessions", 50, "--k", 3, "--randomised-lists", 100, "--out", out]
    return {
        "generate": ["generate", "tiny", "--train", 3, "--vali", 2, "--test", 2, "--out", out, "--overwrite"],
        "simulate": ["simulate", "--data", inputs / "DATA", "--logging", "random", *simulated, "--overwrite"],
        "import-log": ["import-log", inputs / "clicks.csv", "--out", out, "--overwrite"],
        "count": ["count", inputs / "LOG", "--out", out, "--overwrite"],
        "distil": ["distil", inputs / "MODEL", "--data", inputs / "LOG", "--to", "linear", "--out", out, "--overwrite"],
        "report": ["report", inputs / "RESULTS", "--out", out],
        "export": ["export", inputs / "MODEL", "--to", "elasticsearch-ltr", "--out", out / "OUT.json", "--overwrite"],
    }


@pytest.mark.parametrize("which", ["sample", pytest.param("all", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("generate", marks=pytest.mark.thorough),
        pytest.param("simulate", marks=pytest.mark.thorough),
        "import-log",
        "count",
        pytest.param("distil", marks=pytest.mark.thorough),
        pytest.param("report", marks=pytest.mark.thorough),
        "export",
    ],
)
def test_a_command_survives_every_fault(
    name: str, which: str, inputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = inputs / "out" / "OUT"
    command = commands(inputs, out)[name]
    assert run(*command) == 0
    expected = contents(out)
    assert expected
    calls = calls_of(*command)
    assert calls >= 5
    for fault in faults(calls, which):
        capsys.readouterr()
        check_after_fault(out, run_with(fault, *command), capsys.readouterr().err, expected)
    for size in LIMITS:
        capsys.readouterr()
        with largest_file(size):
            status = run(*command)
        check_after_fault(out, status, capsys.readouterr().err, expected)
    assert run(*command) == 0
    assert contents(out) == expected


def check_after_fault(out: Path, status: int, said: str, expected: dict[str, bytes]) -> None:
    """One line if the command failed; the output is there in any case, and nothing else is."""
    check_said(status, said)
    assert contents(out) == expected, said
    assert [file.name for file in out.parent.iterdir()] == ["OUT"], said


def check_said(status: int, said: str) -> None:
    """One line if the command failed."""
    problems = [line for line in said.splitlines() if line.startswith("error: ")]
    assert len(problems) == (status == 2), said
    assert status in (0, 2), said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("learner", "which"),
    [
        pytest.param("factored", "sample", marks=pytest.mark.thorough),
        pytest.param("sac", "sample", marks=pytest.mark.thorough),
        pytest.param("factored", "all", marks=pytest.mark.slow),
        pytest.param("sac", "all", marks=pytest.mark.slow),
    ],
)
def test_training_goes_on_after_every_fault(
    learner: str, which: str, inputs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Users of the same log, who are no file: to fit them takes two thirds of the time of a run.
    monkeypatch.setattr(UsersOfLog, "fit", once(UsersOfLog.fit))

    def command(out: Path) -> list[object]:
        settings = [word for each in SETTINGS[learner] for word in ("--set", each)]
        few = ["--steps", 4, "--set", "training.validate_every=2", "--no-student"]
        return ["train", inputs / "LOG", "--learner", learner, *few, *settings, "--out", out]

    whole, out = inputs / "WHOLE", inputs / "out" / "OUT"
    calls = calls_of(*command(whole))
    for fault in faults(calls, which):
        shutil.rmtree(out.parent, ignore_errors=True)
        capsys.readouterr()
        status = run_with(fault, *command(out))
        check_said(status, capsys.readouterr().err)
        if list(out.glob("model.json")):
            load_policy(out)
        resumed = "--resume" if (out / CHECKPOINT_FILE).exists() else "--overwrite"
        if status:
            assert run(*command(out), resumed) == 0, capsys.readouterr().err
        assert contents(out) == contents(whole), fault
        assert metrics(out) == metrics(whole), fault
        assert [file.name for file in out.parent.iterdir()] == ["OUT"]


def once(call: Callable[..., Any]) -> Callable[..., Any]:
    """What the first call returns, for all others, too."""
    first: list[Any] = []

    def given(*arguments: Any, **options: Any) -> Any:
        if not first:
            first.append(call(*arguments, **options))
        return first[0]

    return given


def metrics(folder: Path) -> list[dict[str, Any]]:
    """The logged values, without times."""
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return [{name: value for name, value in json.loads(line).items() if "second" not in name} for line in lines]


@pytest.mark.parametrize(
    "which",
    [pytest.param("sample", marks=pytest.mark.thorough), pytest.param("all", marks=pytest.mark.slow)],
)
def test_an_experiment_goes_on_after_every_fault(
    which: str, inputs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Here(InTurn):
        """Workers in this process, whose disk fails."""

        def __enter__(self) -> "Here":
            return self

        def __exit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr(run_cells, "Processes", lambda experiment, jobs: Here(experiment))

    def command(out: Path) -> list[object]:
        return ["experiment", inputs / "small.toml", "--data", "tiny", "--queries", 12, "--jobs", 1, "--out", out]

    whole, out = inputs / "WHOLE", inputs / "out" / "OUT"
    calls = calls_of(*command(whole))
    expected = {cell: numbers(result) for cell, result in read_results(whole).cells.items()}
    for fault in faults(calls, which):
        shutil.rmtree(out.parent, ignore_errors=True)
        capsys.readouterr()
        status = run_with(fault, *command(out))
        check_said(status, capsys.readouterr().err)
        before = {file: file.read_bytes() for file in out.glob("cells/*.json")}
        if status:
            assert run(*command(out)) == 0, capsys.readouterr().err
        assert all(file.read_bytes() == content for file, content in before.items()), "what was finished is kept"
        assert {cell: numbers(result) for cell, result in read_results(out).cells.items()} == expected
        assert [file.name for file in out.parent.iterdir()] == ["OUT"]
