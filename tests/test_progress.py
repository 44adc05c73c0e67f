from collections.abc import Callable
from pathlib import Path

import pytest

from cuolr.examination.from_clicks import ExaminationModel
from cuolr.logs import counts
from cuolr.logs.aggregate import aggregate
from cuolr.logs.counts import ClickCounts
from cuolr.logs.diagnosis import describe_folder
from cuolr.logs.log_folder import load_click_log, read_click_log, save_click_log
from cuolr.off_policy.assess import assess
from cuolr.off_policy.judgments import judge
from cuolr.policies.random_policy import RandomPolicy
from cuolr.progress import unseen_stages
from tests.small_log import small_log

LOG = small_log()


class Heard:
    """The stages that were told of, and how much of each was done."""

    def __init__(self) -> None:
        self.stages: list[tuple[str, int | None]] = []
        self.done: list[list[int]] = []

    def __call__(self, name: str, total: int | None) -> Callable[[int], None]:
        self.stages.append((name, total))
        self.done.append([])
        return self.done[-1].append

    def check(self) -> None:
        """All that was to be done has been done."""
        for (name, total), done in zip(self.stages, self.done, strict=True):
            assert sum(done) == (total or 0), name


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_click_log(LOG, tmp_path / "LOG")
    return tmp_path / "LOG"


def test_reading_a_log_is_told_chunk_by_chunk(folder: Path) -> None:
    heard = Heard()
    chunks = [len(chunk) for chunk in read_click_log(folder, rows_at_a_time=2, stages=heard)]
    assert heard.stages == [("reading LOG", len(LOG))]
    assert heard.done == [chunks]
    for read in (load_click_log, describe_folder):
        heard = Heard()
        read(folder, stages=heard)
        assert heard.stages == [("reading LOG", len(LOG))]
        heard.check()


def test_counting_goes_over_sessions_or_lists_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counts, "SESSIONS_AT_A_TIME", 3)
    for log in (LOG, aggregate(LOG)):
        heard = Heard()
        ClickCounts.of(log, heard)
        assert heard.stages == [(counts.COUNTING, None), (counts.COUNTING, len(log))]
        heard.check()


def test_examination_is_told_position_by_position() -> None:
    heard = Heard()
    ExaminationModel.fit(LOG, stages=heard)
    k = ClickCounts.of(LOG).lists.k
    assert heard.stages[-1] == ("estimating examination", k + 1)
    assert len(heard.done[-1]) == k + 1
    heard.check()


def test_all_stages_of_an_evaluation_end() -> None:
    heard = Heard()
    assert assess(RandomPolicy(1), LOG, stages=heard) == assess(RandomPolicy(1), LOG)
    assert {"estimating examination", "scoring", "ranking"} <= {name for name, _ in heard.stages}
    heard.check()
    heard = Heard()
    judge(LOG, stages=heard)
    heard.check()


def test_progress_needs_nobody_to_follow_it() -> None:
    unseen_stages("reading", 3)(1)
