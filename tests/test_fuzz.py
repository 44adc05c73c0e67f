"""Damaged and crafted files of every kind: some in each run of the slow tests, an hour of them by `make fuzz`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    few_threads = {"OMP_NUM_THREADS": "1", "POLARS_MAX_THREADS": "2"}
    environment = {**os.environ, **few_threads, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    # Its children are forked, for which this process has too many threads.
    command = [sys.executable, "-m", "fuzz", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_no_damaged_file_crashes_hangs_or_lies() -> None:
    ended = run("--cases", "60")
    assert ended.returncode == 0, ended.stderr + ended.stdout


@pytest.mark.slow
def test_no_crafted_trees_crash_or_hang() -> None:
    ended = run("--cases", "1000", "--kinds", "trees, hash made anew")
    assert ended.returncode == 0, ended.stderr + ended.stdout


@pytest.mark.thorough
def test_the_table_of_the_documentation_is_that_of_the_run() -> None:
    printed = run("--table", "docs/results/fuzz-counts.json").stdout
    assert printed.count("\n") > 10
    assert printed in (ROOT / "docs/untrusted-files.md").read_text()


@pytest.mark.thorough
def test_what_must_not_be_is_found(tmp_path: Path) -> None:
    """Readers that do what none may do."""
    (tmp_path / "program.py").write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    command = [sys.executable, str(tmp_path / "program.py"), str(tmp_path)]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    found = dict(line.split(" ", 1) for line in ended.stdout.splitlines() if " " in line)
    assert found["crash"] == "SIGSEGV", ended.stderr
    assert "s of CPU" in found["hang"]
    assert "MB" in found["memory"]
    assert "KeyError: 'missing'" in ended.stdout
    assert "other" in found
    assert ended.stdout.count("failures 1") == 5


PROGRAM = """
import os, signal, sys, time
from collections import Counter
from pathlib import Path
import numpy as np
from fuzz.cases import Case
from fuzz.counts import failures
from fuzz.kinds.all import KINDS
from fuzz.kinds.kind import Kind
from fuzz.sandbox import Sandbox

def make(folder):
    (folder / "one").mkdir()
    (folder / "one" / "file").write_bytes(b"whole")

def spin():
    start = time.process_time()
    while time.process_time() < start + 2.5:
        pass

BAD = {
    "crash": lambda: os.kill(os.getpid(), signal.SIGSEGV),
    "hang": spin,
    "memory": lambda: np.ones(600 << 17).sum(),
    "traceback": lambda: {}["missing"],
    "other": lambda: "values of another file",
}

def read(folder):
    if (folder / "file").read_bytes() != b"whole":
        return BAD[(folder / "file").read_text()]()
    return "values"

def damage(content, choices):
    return choices.one_of(list(BAD)).encode()

KINDS["bad"] = Kind("bad", make, read, {"*": (damage,)}, checksum=True)
with Sandbox("bad", Path(sys.argv[1]) / "sandbox") as sandbox:
    for number in range(len(BAD)):
        outcome = sandbox.run(Case("bad", 1, (0, 0, 0, number)))
        print(outcome.verdict, outcome.text)
        print("failures", failures("bad", Counter([outcome.verdict])))
"""
