import pytest

from cuolr.cli.terminal import live_table, progress_bar, say, show_table, stage_bars, training_bar


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
