import pytest

from cuolr.terminal import training_bar


def test_without_a_terminal_training_tells_a_line_for_each_validation(capsys: pytest.CaptureFixture[str]) -> None:
    with training_bar(4) as progress:
        progress(1, {"loss": 2.0, "q": 0.25})
        progress(2, {"loss": 1.5, "q": 0.5, "entropy": 1.0, "validation": 0.4, "best": 0.4})
        progress(3, {"loss": 1.0, "q": 0.5})
    captured = capsys.readouterr()
    assert captured.err.splitlines() == ["step 2 of 4: loss 1.5000, q 0.5000, validation 0.4000, best 0.4000"]
    assert captured.out == ""


def test_in_a_terminal_the_bar_shows_the_latest_values(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "160")
    with training_bar(4) as progress:
        progress(2, {"loss": 1.5, "validation": 0.4})
        progress(3, {"loss": 1.25})
    assert "loss 1.2500, validation 0.4000" in capsys.readouterr().err
