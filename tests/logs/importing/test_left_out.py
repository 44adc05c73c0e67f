"""Times, windows and ids of imported logs."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from cuolr.errors import InputError
from cuolr.logs.hashed_ids import IdKey
from cuolr.logs.importing.import_log import import_log_with_report
from cuolr.logs.importing.import_options import ImportOptions
from cuolr.logs.importing.import_report import Amounts
from cuolr.logs.time_window import TimeWindow

FEATURES = pl.DataFrame({"query_id": ["q", "q"], "doc_id": ["a", "b"], "x": [1.0, 2.0]})
# Three sessions of two documents each.
TABLE = pl.DataFrame(
    {
        "query_id": ["q"] * 6,
        "session_id": [10, 10, 9, 9, 8, 8],
        "position": [1, 2] * 3,
        "doc_id": ["a", "b"] * 3,
        "click": [1, 0, 1, 1, 0, 0],
    }
)
DAYS = ["2026-11-03", "2026-11-03", "2026-11-02", "2026-11-02", "2026-11-01", "2026-11-01"]


def timed(times: Sequence[object]) -> pl.DataFrame:
    return TABLE.with_columns(pl.Series("timestamp", times))


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2026-11-01T10:00:00Z", "2026-11-01T10:00:00"),
        ("2026-11-01T10:00:00.25Z", "2026-11-01T10:00:00.25"),
        ("2026-11-01 10:00:00", "2026-11-01T10:00:00"),
        (" 2026-11-01T10:00 ", "2026-11-01T10:00:00"),
        ("2026-11-01T10:00:00+02:00", "2026-11-01T08:00:00"),
        ("2026-11-01T10:00-0530", "2026-11-01T15:30:00"),
        ("2026-11-01", "2026-11-01T00:00:00"),
        ("1969-12-31T23:59:59Z", "1969-12-31T23:59:59"),
    ],
)
def test_times_in_texts_are_read_as_utc(text: str, utc: str, tmp_path: Path) -> None:
    timed([text] * 6).write_ndjson(tmp_path / "log.jsonl")
    for table in (timed([text] * 6), tmp_path / "log.jsonl"):
        log, _ = import_log_with_report(table, FEATURES)
        assert log.timestamp is not None
        assert log.timestamp.tolist() == [np.datetime64(utc, "us").item()] * 3


def test_forms_of_times_can_be_mixed_and_the_earliest_of_a_session_counts() -> None:
    mixed = ["2026-11-01T10:00Z", "2026-11-01T11:30+02:00", *DAYS[2:]]
    log, _ = import_log_with_report(timed(mixed), FEATURES)
    assert [str(time) for time in log.timestamp] == [  # type: ignore[union-attr]
        "2026-11-01T00:00:00.000000",
        "2026-11-02T00:00:00.000000",
        "2026-11-01T09:30:00.000000",
    ]


def test_a_text_that_is_no_time_is_a_problem_of_its_row() -> None:
    with pytest.raises(
        InputError,
        match="the table: row 3: timestamp: expected a finite number or a time such as 2026-11-01T12:30, in the "
        "years 1 to 9999, found 'noon'",
    ):
        import_log_with_report(timed([*DAYS[:2], "noon", *DAYS[3:]]), FEATURES, ImportOptions(strict=True))


def test_texts_and_times_of_different_files_go_together(tmp_path: Path) -> None:
    timed(DAYS).write_ndjson(tmp_path / "1.jsonl")
    later = timed([np.datetime64("2026-11-04T01:00", "us").item()] * 6)
    later.with_columns(pl.col("session_id") + 10).write_parquet(tmp_path / "2.parquet")
    log, _ = import_log_with_report([tmp_path / "1.jsonl", tmp_path / "2.parquet"], FEATURES)
    assert sorted(str(time)[:13] for time in log.timestamp) == [  # type: ignore[union-attr]
        *(f"2026-11-0{day}T00" for day in (1, 2, 3)),
        *["2026-11-04T01"] * 3,
    ]
    TABLE.with_columns(timestamp=pl.lit(5)).write_parquet(tmp_path / "3.parquet")
    with pytest.raises(InputError, match="expected numbers in all files, or times in all"):
        import_log_with_report([tmp_path / "1.jsonl", tmp_path / "3.parquet"], FEATURES)


def test_sessions_outside_the_window_are_left_out_and_counted() -> None:
    options = ImportOptions(window=TimeWindow("2026-11-02"), max_dropped=0.0)
    log, report = import_log_with_report(timed(DAYS), FEATURES, options)
    assert log.session_id is not None
    assert log.session_id.tolist() == ["9", "10"]
    (outside,) = report.dropped
    assert (outside.reason, outside.amounts) == ("outside the time window", Amounts(1, 2, 0))
    assert (report.read, report.kept) == (Amounts(3, 6, 3), Amounts(2, 4, 3))
    assert report.is_clean


def test_the_unit_of_numbers_is_said() -> None:
    seconds = [1_793_664_000] * 2 + [1_793_577_600] * 2 + [1_793_491_200] * 2
    log, report = import_log_with_report(timed(seconds), FEATURES, ImportOptions(window=TimeWindow("1d")))
    assert log.sessions == 2
    assert report.notes == ["timestamps are read as seconds since 1970 (latest: 2026-11-03T00:00:00Z)"]


def test_a_window_needs_timestamps() -> None:
    with pytest.raises(InputError, match="a time window needs timestamps, and the log has none"):
        import_log_with_report(TABLE, FEATURES, ImportOptions(window=TimeWindow("1d")))


def test_ids_are_those_of_the_sessions_that_are_kept() -> None:
    users = TABLE.with_columns(user_id=pl.Series(["ann", None, None, None, None, "bob"]))
    log, _ = import_log_with_report(users, FEATURES)
    assert log.session_id is not None
    assert log.user_id is not None
    assert log.session_id.tolist() == ["8", "9", "10"]
    assert log.user_id.tolist() == ["bob", "", "ann"]
    dropped = users.with_columns(click=pl.Series([1, 0, 1, -5, 0, 0]))
    log, _ = import_log_with_report(dropped, FEATURES, ImportOptions(max_dropped=1))
    assert log.session_id.tolist() == ["8", "10"]  # type: ignore[union-attr]
    assert log.user_id.tolist() == ["bob", "ann"]  # type: ignore[union-attr]
    log, _ = import_log_with_report(users, FEATURES, ImportOptions(session_ids=False))
    assert log.session_id is None


def test_numbers_can_be_the_ids_of_users(tmp_path: Path) -> None:
    TABLE.with_columns(user_id=pl.lit("007")).write_csv(tmp_path / "log.csv")
    log, _ = import_log_with_report(tmp_path / "log.csv", FEATURES)
    assert log.user_id.tolist() == ["007"] * 3  # type: ignore[union-attr]
    with pytest.raises(InputError, match="column 'user_id': expected text or whole numbers, found List"):
        import_log_with_report(TABLE.with_columns(user_id=pl.lit([1])), FEATURES)


def test_hashed_ids_change_nothing_else() -> None:
    key = IdKey(b"0123456789abcdef")
    plain, _ = import_log_with_report(TABLE, FEATURES)
    hashed, _ = import_log_with_report(TABLE, FEATURES, ImportOptions(id_key=key))
    assert hashed.candidates.query_ids.tolist() == key.hash("query_id", ["q"]).tolist()
    assert hashed.session_id.tolist() == key.hash("session_id", ["8", "9", "10"]).tolist()  # type: ignore[union-attr]
    assert hashed.candidates.document_ids.tolist() == ["a", "b"]  # type: ignore[union-attr]
    assert np.array_equal(plain.clicks, hashed.clicks)
    assert np.array_equal(plain.ranking, hashed.ranking)
