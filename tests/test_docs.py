"""What the pages under docs show in Python runs as it stands, but for the number of steps."""

import re
import runpy
from pathlib import Path

import pytest

import cuolr
from cuolr.data.letor.reader import write_letor
from cuolr.policies.random_policy import RandomPolicy
from cuolr.training.base_learner import LEARNERS

DOCS = Path(__file__).resolve().parents[1] / "docs"
EXAMPLES = [
    pytest.param(example, id=f"{page.relative_to(DOCS)}-{number}")
    for page in sorted(DOCS.rglob("*.md"))
    for number, example in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL), start=1)
]


@pytest.fixture
def prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the pages take for granted: a log LOG and documents to rank."""
    train, _, test = cuolr.generate_splits("tiny", 12, 4, 4, seed=1)
    log = cuolr.simulate(train, RandomPolicy(1), cuolr.click_model("pbm"), sessions=200, k=3)
    cuolr.save_click_log(log, str(tmp_path / "LOG"))
    write_letor(test, tmp_path / "documents.txt")
    monkeypatch.chdir(tmp_path)
    LEARNERS.names()
    monkeypatch.setattr(LEARNERS, "_entries", {**LEARNERS._entries})  # what an example registers goes with it


@pytest.mark.usefixtures("prepared")
@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_runs(example: str) -> None:
    exec(compile(re.sub(r"steps=\d+", "steps=3", example), "example", "exec"), {})


@pytest.mark.thorough
def test_two_weeks_of_a_shop(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(DOCS / "two_weeks.py"))
    said = capsys.readouterr().out
    assert "week 1: kept 6,000 of 6,000 sessions" in said
    assert "assessed on week 2: ship" in said
    assert "both weeks: 12,000 sessions" in said


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 2
