"""What commands print; what they say in a message, they say to programs with --json."""

import inspect
import json
from pathlib import Path
from typing import Any

import pytest

from cuolr.cli.main import COMMANDS, MAX_PROBLEMS
from cuolr.cli.terminal import MAX_MESSAGE, live_table, progress_bar, say, show_table, stage_bars, training_bar
from cuolr.policies.model_folder import save_policy
from cuolr.policies.random_policy import RandomPolicy
from tests.cli.conftest import Run


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if stderr were one, whatever the tests are run in."""
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": "160"}.items():
        monkeypatch.setenv(name, value)


def test_without_a_terminal_training_tells_a_line_for_each_validation(capsys: pytest.CaptureFixture[str]) -> None:
    with training_bar(4) as progress:
        progress(1, {"loss": 2.0, "q": 0.25})
        progress(2, {"loss": 1.5, "q": 0.5, "entropy": 1.0, "validation": 0.4, "best": 0.4})
        progress(3, {"loss": 1.0, "q": 0.5})
    captured = capsys.readouterr()
    assert captured.err.splitlines() == ["step 2 of 4: loss 1.5000, q 0.5000, validation 0.4000, best 0.4000"]
    assert captured.out == ""


@pytest.mark.usefixtures("terminal")
def test_in_a_terminal_the_bar_shows_the_latest_values(capsys: pytest.CaptureFixture[str]) -> None:
    with training_bar(4) as progress:
        progress(2, {"loss": 1.5, "validation": 0.4})
        progress(3, {"loss": 1.25})
    assert "loss 1.2500, validation 0.4000" in capsys.readouterr().err


def test_without_a_terminal_a_table_that_fills_up_is_told_line_by_line(capsys: pytest.CaptureFixture[str]) -> None:
    with live_table("scores", ["", "pbm", "dcm"], ["naive", "IPW"]) as put:
        put("IPW", ["pbm"], "0.5")
        put("naive", ["pbm", "dcm"], "0.25")
    assert capsys.readouterr().err.splitlines() == ["IPW, pbm: 0.5", "naive, pbm, dcm: 0.25"]


@pytest.mark.usefixtures("terminal")
def test_in_a_terminal_the_table_has_all_that_came_so_far(capsys: pytest.CaptureFixture[str]) -> None:
    with live_table("scores", ["", "pbm"], ["naive", "[IPW]"]) as put:
        put("naive", ["pbm"], "0.25")
        put("[IPW]", ["pbm"], "0.5")
        last = capsys.readouterr().err.rpartition("scores")[2]
    assert "naive" in last
    assert "0.25" in last
    assert "[IPW]" in last
    assert "0.5" in last


@pytest.mark.usefixtures("terminal")
def test_what_is_said_while_a_bar_is_shown_is_on_the_bars_own_console(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("cells", 2) as progress:
        progress(1)
        say("halfway")
    shown = capsys.readouterr().err
    # The bar is wiped before the message, and drawn again after it.
    assert "\x1b[2K" in shown.partition("halfway")[0]
    assert "cells" in shown.partition("halfway")[2]


@pytest.mark.usefixtures("terminal")
def test_the_time_left_is_known_however_long_each_takes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr("rich.console.monotonic", lambda: now)
    with progress_bar("cells", 4) as progress:
        progress(0)
        for _ in range(2):
            now += 60
            progress(1)
        say("two of four")
    assert "02:00" in capsys.readouterr().err.partition("two of four")[2]


@pytest.mark.usefixtures("terminal")
def test_each_stage_shows_its_own_time_left(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr("rich.console.monotonic", lambda: now)
    with stage_bars() as stages:
        stages("listing", 2)(1)
        first = stages("reading", 4)
        first(0)
        now += 60
        first(1)
        say("one of four")
    last = capsys.readouterr().err.partition("one of four")[2]
    assert "listing" not in last
    assert all(text in last for text in ("reading", "25%", "03:00"))
    with stage_bars() as stages:
        first = stages("reading", 4)
        stages("fitting", None)
        first(1)
        now += 65
        say("no parts")
    last = capsys.readouterr().err.partition("no parts")[2]
    assert "reading" not in last
    assert all(text in last for text in ("fitting", "0:01:05"))
    with stage_bars() as stages:
        stages("ranking", 4)
        now += 65
        say("none of four")
    last = capsys.readouterr().err.partition("none of four")[2]
    assert all(text in last for text in ("ranking", "0%", "0:01:05"))


def test_without_a_terminal_stages_say_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with stage_bars() as stages:
        stages("reading", 2)(1)
    assert capsys.readouterr().err == ""


def test_names_in_brackets_are_shown_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    show_table("[a]", ["[b]", "PBM [eta=2]"], [["[c]", "1"]], caption="[d]")
    text = capsys.readouterr().out
    assert all(name in text for name in ("[a]", "[b]", "PBM [eta=2]", "[c]", "[d]"))


FEATURES = "0 qid:q 1:5 2:1 # a\n0 qid:q 1:6 2:3 # b\n"
TABLE = "query_id,session_id,position,doc_id,click\nq,s,1,b,0\nq,s,2,a,1\nq,t,1,a,0\n"


def printed(run: Run, *arguments: object) -> dict[str, Any]:
    result = run(*arguments, "--json")
    assert result.status == 0, result.err
    assert "wrote" not in result.err
    content: dict[str, Any] = json.loads(result.out)
    return content


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - {"browse", "serve"}))  # these show pages, and run on
def test_a_command_that_reports_takes_json(name: str) -> None:
    assert inspect.signature(COMMANDS[name].load()).parameters["json"].default is False


def test_generate_tells_what_it_wrote(run: Run, tmp_path: Path) -> None:
    sizes = ("--train", 9, "--vali", 2, "--test", 3)
    found = printed(run, "generate", "tiny", "--out", tmp_path / "data", *sizes)
    expected = {"preset": "tiny", "train": 9, "vali": 2, "test": 3, "seed": 1, "max_grade": 2}
    assert found == {"out": str(tmp_path / "data"), **expected}


def test_simulate_tells_what_it_wrote(run: Run, tiny: Path, tmp_path: Path) -> None:
    out = tmp_path / "log"
    arguments = ("--data", tiny, "--click-model", "pbm", "--sessions", 20, "--k", 3, "--randomised-lists", 0)
    found = printed(run, "simulate", *arguments, "--out", out, "--logging", "random")
    logging = {"name": "random", "seed": 1}
    expected = {"sessions": 20, "k": 3, "seed": 1, "data": str(tiny), "fold": 1, "logging": logging}
    assert found == {"out": str(out), **expected}


def test_import_log_tells_what_it_wrote(run: Run, tmp_path: Path) -> None:
    (tmp_path / "features.txt").write_text(FEATURES)
    (tmp_path / "log.csv").write_text(TABLE)
    out = tmp_path / "log"
    found = printed(run, "import-log", tmp_path / "log.csv", "--features", tmp_path / "features.txt", "--out", out)
    report = found.pop("report")
    assert found == {"out": str(out), "sessions": 2, "queries": 1, "k": 2}
    assert report["read"] == report["kept"] == {"sessions": 2, "impressions": 3, "clicks": 1}
    assert report["repaired"] == report["dropped"] == []


def test_rank_tells_what_it_wrote(run: Run, tmp_path: Path) -> None:
    (tmp_path / "features.txt").write_text(FEATURES)
    save_policy(RandomPolicy(1), tmp_path / "model")
    out = tmp_path / "out.csv"
    found = printed(run, "rank", tmp_path / "model", "--candidates", tmp_path / "features.txt", "--out", out)
    assert found == {"out": str(out), "queries": 1, "k": 2, "sample": None}


def test_oracle_tells_its_score(run: Run, tiny: Path, tmp_path: Path) -> None:
    found = printed(run, "oracle", "--data", tiny, "--out", tmp_path / "model", "--threads", 1)
    arguments = ("--data", tiny, "--split", "vali", "--measures", "ndcg@10")
    evaluated = printed(run, "evaluate", tmp_path / "model", *arguments)
    assert (found["chosen"], found["measure"], found["split"]) == ("lambdamart", "ndcg@10", "vali")
    assert found["scores"] == {"lambdamart": pytest.approx(evaluated["measures"]["ndcg@10"])}


def test_a_very_long_message_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    half = MAX_MESSAGE // 2
    say("x" * 50_000 + "y" * 50_000)
    assert capsys.readouterr().err == "x" * half + " … " + "y" * half + "\n"


def test_only_the_first_of_many_problems_are_shown(run: Run, tmp_path: Path) -> None:
    names = [f"x{number}" for number in range(60)]
    rows = [",".join([f"{document}", *["inf"] * len(names)]) for document in "ab"]
    (tmp_path / "f.csv").write_text("\n".join([",".join(["doc_id", *names]), *rows]))
    (tmp_path / "c.csv").write_text("query_id,session_id,position,doc_id,click\nq,1,1,a,1\nq,1,2,b,0\n")
    done = run("import-log", tmp_path / "c.csv", "--document-features", tmp_path / "f.csv", "--out", tmp_path / "LOG")
    lines = done.err.splitlines()
    assert (done.status, len(lines), lines[-1]) == (2, MAX_PROBLEMS + 1, "error: 10 more problems like these")


def test_too_little_memory_is_said_in_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_large(_: list[str]) -> None:
        raise MemoryError("Unable to allocate 4.00 TiB")

    monkeypatch.setattr("cuolr.cli.main._run", too_large)
    done = run("list")
    assert (done.status, done.err) == (2, "error: not enough memory: Unable to allocate 4.00 TiB\n")


def test_title_and_caption_are_not_broken_to_the_width_of_a_narrow_table(capsys: pytest.CaptureFixture[str]) -> None:
    title, caption = "a title that is wider than its table", "a caption that is wider than its table, too"
    show_table(title, ["a", "b"], [["1", "2"]], caption)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == title
    assert lines[-2:] == [caption, ""]
