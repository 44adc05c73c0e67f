from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from cuolr import progress
from cuolr.data.feature_tables import FeatureTables
from cuolr.data.letor.reader import write_letor
from cuolr.data.synthetic import generate_splits
from cuolr.examination.from_clicks import ExaminationModel
from cuolr.logs import counts, log_folder
from cuolr.logs.aggregate import aggregate
from cuolr.logs.counts import ClickCounts
from cuolr.logs.deletion import SessionsToDelete, delete_sessions
from cuolr.logs.importing import session_blocks
from cuolr.logs.importing.import_log import import_source, read_source
from cuolr.logs.importing.import_options import ImportOptions
from cuolr.logs.log_folder import load_click_log, read_click_log, save_click_log
from cuolr.logs.log_info import describe_folder
from cuolr.logs.merge import merge_logs
from cuolr.off_policy.assess import assess
from cuolr.off_policy.judgments import judge
from cuolr.policies.random_policy import RandomPolicy
from cuolr.progress import Profile, in_shares, no_stages
from tests.logs.day_tables import imported, make_days, save_days
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

    def read(self) -> list[tuple[str, int | None]]:
        """The stages but for the comparison with hashes."""
        return [(name, total) for name, total in self.stages if not name.startswith("checking")]

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
    assert [name for name, _ in heard.stages] == ["checking LOG", "reading LOG"]
    assert heard.read() == [("reading LOG", len(LOG))]
    assert heard.done[-1] == chunks
    heard.check()
    for read in (load_click_log, describe_folder):
        heard = Heard()
        read(folder, stages=heard)
        assert heard.read() == [("reading LOG", len(LOG))]
        heard.check()


def test_writing_a_log_is_told_chunk_by_chunk_and_chunks_leave_no_trace(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_folder, "ROWS_AT_A_TIME", 2)
    written: list[int] = []
    save_click_log(LOG, tmp_path / "chunks", progress=written.append)
    assert written == [2] * (len(LOG) // 2) + [1] * (len(LOG) % 2)
    assert (tmp_path / "chunks" / "sessions.parquet").read_bytes() == (folder / "sessions.parquet").read_bytes()


def test_merging_is_told_session_by_session_and_so_is_comparing_those_in_several_logs(tmp_path: Path) -> None:
    days = make_days(1)
    paths = save_days(days, tmp_path)
    rows = sum(len(load_click_log(path)) for path in paths)
    heard = Heard()
    merge_logs(paths, tmp_path / "apart", stages=heard)
    assert heard.stages == [("merging", rows)]
    heard.check()
    heard = Heard()
    merge_logs([*paths, tmp_path / "apart"], tmp_path / "again", stages=heard)
    assert heard.stages == [("comparing", 2 * rows), ("merging", 2 * rows)]
    heard.check()


def test_a_deletion_reads_the_log_to_find_sessions_and_to_write_the_others(tmp_path: Path) -> None:
    days = make_days(1)
    log = imported(days.table, days.features)
    save_click_log(log, tmp_path / "LOG")
    heard = Heard()
    delete_sessions(tmp_path / "LOG", SessionsToDelete(["0-1"]), stages=heard)
    assert heard.read() == [("reading LOG", len(log))] * 2
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


@pytest.mark.thorough
def test_all_stages_of_an_evaluation_end() -> None:
    heard = Heard()
    assert assess(RandomPolicy(1), LOG, stages=heard) == assess(RandomPolicy(1), LOG)
    assert {"estimating examination", "comparing click models", "estimating the gain", "ranking"} <= {
        name for name, _ in heard.stages
    }
    heard.check()
    heard = Heard()
    judge(LOG, stages=heard)
    heard.check()


def test_progress_needs_nobody_to_follow_it() -> None:
    no_stages("reading", 3)(1)


def test_shares_of_the_work_add_up_to_whole_amounts() -> None:
    done: list[int] = []
    advance = in_shares(done.append, 10)
    for _ in range(3):
        advance(1 / 3)
    assert done == [3, 4, 3]


def test_an_import_is_told_of_its_features_and_of_its_table(tmp_path: Path) -> None:
    pl.DataFrame({"query_id": ["q"] * 2, "doc_id": ["a", "b"], "x": [1.0, 2.0]}).write_csv(tmp_path / "pairs.csv")
    pl.DataFrame({"doc_id": ["a", "b"], "price": [1.0, 2.0]}).write_ndjson(tmp_path / "documents.jsonl")
    table = pl.DataFrame(
        {"query_id": ["q"] * 2, "session_id": [1, 1], "position": [1, 2], "doc_id": ["a", "b"], "click": [0, 1]}
    )
    table.write_csv(tmp_path / "log.csv")
    tables = FeatureTables(tmp_path / "pairs.csv", tmp_path / "documents.jsonl")
    heard = Heard()
    source = read_source([tmp_path / "log.csv"], "table", ImportOptions(), heard)
    import_source(source, tables, ImportOptions(), heard)
    assert heard.stages == [
        ("reading log.csv", (tmp_path / "log.csv").stat().st_size),
        ("reading pairs.csv", 2),
        ("finding the columns of documents.jsonl", (tmp_path / "documents.jsonl").stat().st_size),
        ("reading documents.jsonl", 2),
        ("finding kinds of features", 2),
        ("encoding features", 2),
        (f"importing {tmp_path / 'log.csv'}", 100),
    ]
    heard.check()


@pytest.mark.parametrize("rows_at_a_time", [10**6, 5000])
def test_an_import_is_told_while_its_rows_are_read_whether_in_one_block_or_in_several(
    rows_at_a_time: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_blocks, "ROWS_AT_A_TIME", rows_at_a_time)
    monkeypatch.setattr(session_blocks, "ROWS_PER_SAMPLE", 3)
    sessions = 100_000
    table = pl.DataFrame({"session_id": range(sessions)}).with_columns(
        query_id=pl.lit("q"), position=1, doc_id=pl.format("{}", pl.col("session_id") % 7), click=0
    )
    table.write_csv(tmp_path / "log.csv")
    heard = Heard()
    source = read_source([tmp_path / "log.csv"], "table", ImportOptions(), heard)
    import_source(source, None, ImportOptions(), heard)
    assert heard.stages[1:] == [("listing documents", sessions), (f"importing {tmp_path / 'log.csv'}", 100)]
    heard.check()
    for done in heard.done[1:]:
        assert len([amount for amount in done if amount]) > 3


def test_generating_is_told_query_by_query_and_writing_by_documents(tmp_path: Path) -> None:
    done: list[float] = []
    train, *_ = generate_splits("tiny", 300, 1, 2, seed=1, progress=done.append)
    assert len(done) > 3
    assert sum(done) == 303
    done.clear()
    write_letor(train, tmp_path / "train.txt", done.append)
    assert sum(done) == pytest.approx(1)


def test_a_profile_adds_up_the_time_of_each_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    wall, cpu = iter(range(0, 100, 10)), iter(range(10))
    monkeypatch.setattr(progress, "perf_counter", lambda: next(wall))
    monkeypatch.setattr(progress, "process_time", lambda: next(cpu))
    profile = Profile()
    heard = Heard()
    profile.of(heard)("reading", 3)  # at 0 s
    profile.begin("checkpoints")  # at 10 s
    for _ in range(2):
        with profile.during("steps"):  # from 20 to 30 s, from 40 to 50 s
            pass
    profile.begin(None)  # at 60 s
    assert heard.stages == [("reading", 3)]
    assert profile.seconds == {"reading": (10, 1), "checkpoints": (30, 3), "steps": (20, 2)}
