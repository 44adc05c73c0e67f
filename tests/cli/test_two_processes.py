"""Two processes with the same output: the second says so and ends, before any work, for every verb that writes."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cuolr.cli.help import options_of
from cuolr.cli.main import COMMANDS
from cuolr.output_lock import writing
from tests.cli.conftest import Run

RESULTS = Path(__file__).parents[2] / "docs/results/table1-mq2008-2000-steps/results.parquet"
# Arguments of each verb whose output is OUT; what it reads need not be there, because the output is checked first.
VERBS = {
    "import-log": ["TABLE", "--out", "OUT"],
    "count": ["LOG", "--out", "OUT"],
    "merge-logs": ["LOG", "LOG_2", "--out", "OUT"],
    "delete-sessions": ["OUT", "--session-id", "1"],
    "log-info": ["LOG", "--html", "OUT.html"],
    "propensity": ["LOG", "--out", "OUT.json"],
    "fit-clicks": ["LOG", "--out", "OUT.toml"],
    "judgments": ["LOG", "--out", "OUT.csv"],
    "train": ["LOG", "--out", "OUT"],
    "distil": ["MODEL", "--data", "LOG", "--out", "OUT"],
    "export": ["MODEL", "--to", "onnx", "--out", "OUT.onnx"],
    "assess": ["MODEL", "LOG", "--plot", "OUT.svg"],
    "browse": ["MODEL", "LOG", "--static", "OUT.html"],
    "rank": ["MODEL", "--candidates", "TABLE", "--out", "OUT.csv"],
    "evaluate": ["MODEL", "--data", "DATA", "--per-query", "OUT.csv"],
    "pack": ["RESULTS", "OUT.parquet"],
    "generate": ["tiny", "--out", "OUT"],
    "simulate": ["--data", "DATA", "--click-model", "pbm", "--sessions", "5", "--out", "OUT"],
    "oracle": ["--data", "DATA", "--out", "OUT"],
    "demo": ["--out", "OUT"],
    "report": [str(RESULTS), "--out", "OUT"],
    "experiment": ["table1", "--data", "DATA", "--out", "OUT"],
    "tune": ["sac", "--data", "DATA", "--out", "OUT"],
}
HOLD = "import sys; from pathlib import Path; from cuolr.output_lock import writing\n"
HOLD += "with writing(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"


@pytest.fixture(params=VERBS)
def verb(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def other(verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The output, which another process is writing."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", ":".join(sys.path))
    (out,) = (argument for argument in VERBS[verb] if argument.startswith("OUT"))
    with held_by_another(out):
        yield out


@contextmanager
def held_by_another(out: str) -> Iterator[None]:
    """Within the block, another process holds an output."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, out], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield
        process.kill()


def test_the_second_process_says_that_another_is_writing(verb: str, other: str, run: Run, tmp_path: Path) -> None:
    done = run(verb, *VERBS[verb])
    assert (done.status, done.out) == (2, "")
    assert len(done.err.splitlines()) == 1
    assert f"{other}: another process is writing it (process " in done.err
    assert [file.name for file in tmp_path.iterdir()] == [f".{other}.lock.unfinished"]


def test_counts_from_which_another_process_deletes_are_not_read(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", ":".join(sys.path))
    with held_by_another(str(tmp_path / "COUNTS")):
        done = run("delete-sessions", tmp_path / "LOG", "--session-id", "1", "--counts", tmp_path / "COUNTS")
    assert done.status == 2
    assert done.err.startswith(f"error: {tmp_path / 'COUNTS'}: another process is writing it (process ")


def test_an_output_is_free_after_a_command_that_failed(run: Run, tmp_path: Path) -> None:
    assert run("import-log", tmp_path / "none.csv", "--out", tmp_path / "new" / "LOG").status == 2
    assert list(tmp_path.iterdir()) == []
    with writing(tmp_path / "new" / "LOG"):
        pass


def test_every_verb_that_writes_is_tested() -> None:
    """The journal of `serve` has a lock of its own."""
    outputs = {"--out", "OUT", "--html", "--plot", "--static", "--per-query", "--trec-run", "--save-logging"}
    writing_verbs = {
        verb
        for verb, command in COMMANDS.items()
        if any(option.flag in outputs for option in options_of(command.load()))
    }
    assert writing_verbs | {"delete-sessions"} == VERBS.keys()


def test_clean_says_what_it_removed_and_put_back(run: Run, tmp_path: Path) -> None:
    unfinished, lost = tmp_path / f".a.json.{'0' * 12}.unfinished", tmp_path / f".b.json.{'0' * 12}.replaced"
    for file in (unfinished, lost):
        file.write_text("")
    result = run("clean", tmp_path)
    assert (result.status, result.err.splitlines()) == (
        0,
        [f"removed: {unfinished}", f"put back: {lost}", f"{tmp_path}: leftovers removed: 1"],
    )
    assert [file.name for file in tmp_path.iterdir()] == ["b.json"]
    unfinished.write_text("")
    expected = {"leftovers": [{"path": str(unfinished), "outcome": "removed"}]}
    assert json.loads(run("clean", tmp_path, "--json").out) == expected
    result = run("clean", tmp_path / "nowhere")
    assert (result.status, result.err) == (2, f"error: {tmp_path / 'nowhere'}: folder not found\n")
