import datetime
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cuolr.errors import InputError
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.importing.import_options import ImportOptions
from cuolr.logs.importing.problems import EVERY_DOCUMENT
from cuolr.logs.importing.table import read_log_table as read_with_report
from cuolr.types import Candidates
from tests.data.small_data import assert_same_log, candidates_of, full_log, log_of, random_log

CANDIDATES = candidates_of(3, 2)  # d0, d1, d2 of q0; d3, d4 of q1


def read_log_table(table: Path, candidates: Candidates, k: int | None = None, session_ids: bool = False) -> ClickLog:
    """The log of a table of which every problem is an error."""
    log, report = read_with_report(table, candidates, ImportOptions(k=k, strict=True, session_ids=session_ids))
    assert report.read.sessions == report.kept.sessions == len(log)
    return log


def rows_of(log: ClickLog) -> pl.DataFrame:
    """The long table of a log, with sessions named by their row; ids that are texts keep their order, too."""
    if log.session_id is not None:
        return log.to_frame()
    return log.to_frame().with_columns(session_id=pl.format("s{}", pl.col("session_id").cast(pl.String).str.zfill(6)))


def importable(log: ClickLog) -> ClickLog:
    """The log without the columns that are not imported."""
    return replace(log, page_position=None, context={})


WRITERS: dict[str, Callable[[pl.DataFrame, Path], Any]] = {
    "log.parquet": pl.DataFrame.write_parquet,
    "log.csv": pl.DataFrame.write_csv,
    "log.tsv": lambda table, path: table.write_csv(path, separator="\t"),
    "log.jsonl": pl.DataFrame.write_ndjson,
}


@pytest.mark.thorough
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    sizes=st.lists(st.integers(1, 6), min_size=1, max_size=4),
    sessions=st.integers(1, 30),
    k=st.integers(1, 8),
    seed=st.integers(0, 2**32),
    name=st.sampled_from(sorted(WRITERS)),
)
def test_a_log_comes_back_from_its_table_whatever_the_order_of_the_rows(
    sizes: list[int], sessions: int, k: int, seed: int, name: str, tmp_path: Path
) -> None:
    log = random_log(candidates_of(*sizes), sessions, k, seed=seed)
    WRITERS[name](rows_of(log).sample(fraction=1, shuffle=True, seed=seed), tmp_path / name)
    assert_same_log(read_log_table(tmp_path / name, log.candidates, k), log)


@pytest.mark.parametrize("name", WRITERS)
def test_all_columns_come_back(name: str, tmp_path: Path) -> None:
    log = full_log()
    WRITERS[name](rows_of(log), tmp_path / name)
    assert_same_log(read_log_table(tmp_path / name, log.candidates, session_ids=True), importable(log))


@pytest.mark.parametrize("name", ["log.parquet", "log.csv"])
def test_dates_come_back_in_utc(name: str, tmp_path: Path) -> None:
    log = log_of(CANDIDATES, [0, 1], [[2, 0], [1, 0]], [[0, 1], [1, 0]])
    berlin = datetime.timezone(datetime.timedelta(hours=2))
    times = [datetime.datetime(2024, 7, 1, 12, minute, tzinfo=berlin) for minute in (5, 7, 9, 8)]
    WRITERS[name](rows_of(log).with_columns(timestamp=pl.Series(times)), tmp_path / name)
    imported = read_log_table(tmp_path / name, CANDIDATES)
    assert imported.timestamp is not None
    # A session's time is that of its first event.
    assert imported.timestamp.tolist() == [datetime.datetime(2024, 7, 1, 10, minute) for minute in (5, 8)]


def test_a_list_was_in_random_order_if_all_of_its_rows_say_so(tmp_path: Path) -> None:
    log = log_of(CANDIDATES, [0, 1, 0], [[2, 0], [1, 0], [0, 1]], [[0, 1], [1, 0], [0, 0]])
    rows_of(log).with_columns(randomised=pl.Series([1, 1, 0, 0, 0, 1])).write_csv(tmp_path / "log.csv")
    imported = read_log_table(tmp_path / "log.csv", CANDIDATES)
    assert imported.randomised is not None
    assert imported.randomised.tolist() == [True, False, False]


def test_sessions_without_a_click_are_kept(tmp_path: Path) -> None:
    log = log_of(CANDIDATES, [0, 1], [[2, 0], [1, 0]], [[0, 0], [0, 0]])
    rows_of(log).write_parquet(tmp_path / "log.parquet")
    imported = read_log_table(tmp_path / "log.parquet", CANDIDATES)
    assert len(imported) == 2
    assert not imported.clicks.any()


def test_longer_lists_are_cut_at_k_and_shorter_ones_end_in_nothing(tmp_path: Path) -> None:
    log = log_of(CANDIDATES, [0, 1], [[2, 0, 1], [1, 0, -1]], [[0, 1, 1], [1, 0, 0]])
    rows_of(log).write_parquet(tmp_path / "log.parquet")
    assert read_log_table(tmp_path / "log.parquet", CANDIDATES).ranking.tolist() == [[2, 0, 1], [1, 0, -1]]
    assert read_log_table(tmp_path / "log.parquet", CANDIDATES, k=2).ranking.tolist() == [[2, 0], [1, 0]]
    assert read_log_table(tmp_path / "log.parquet", CANDIDATES, k=2).clicks.tolist() == [[0, 1], [1, 0]]
    assert read_log_table(tmp_path / "log.parquet", CANDIDATES, k=4).ranking.tolist() == [[2, 0, 1, -1], [1, 0, -1, -1]]


def test_ids_may_be_numbers_and_clicks_truth_values(tmp_path: Path) -> None:
    candidates = replace(CANDIDATES, query_ids=np.array(["7", "8"]), document_ids=np.array(list("12345")))
    pl.DataFrame(
        {
            "query_id": [8, 7, 7],
            "session_id": [10, 9, 9],
            "position": [1.0, 1.0, 2.0],
            "doc_id": [5, 3, 1],
            "click": [True, False, True],
            "row": ["x", "y", "y"],
        }
    ).write_parquet(tmp_path / "log.parquet")
    log = read_log_table(tmp_path / "log.parquet", candidates)
    assert_same_log(log, log_of(candidates, [0, 1], [[2, 0], [1, -1]], [[0, 1], [1, 0]]))


@pytest.mark.parametrize("dtype", [pl.Categorical(), pl.Enum(["s1", "s0", "q1", "q0", "d4", "d3", "d2", "d1", "d0"])])
def test_ids_may_be_categories(dtype: pl.DataType, tmp_path: Path) -> None:
    log = log_of(CANDIDATES, [0, 1], [[2, 0], [1, 0]], [[0, 1], [1, 0]])
    rows = rows_of(log).with_columns(pl.col("session_id").str.replace("00000", ""))
    rows.cast(dict.fromkeys(["query_id", "session_id", "doc_id"], dtype)).write_parquet(tmp_path / "log.parquet")
    assert_same_log(read_log_table(tmp_path / "log.parquet", CANDIDATES), log)


def test_a_repeated_column_is_refused(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("query_id,session_id,position,doc_id,click,click\nq0,a,1,d0,0,1\n")
    with pytest.raises(InputError, match="column 'click' occurs twice"):
        read_log_table(tmp_path / "log.csv", CANDIDATES)


def test_ids_in_text_files_are_taken_as_they_stand(tmp_path: Path) -> None:
    candidates = replace(CANDIDATES, query_ids=np.array(["007", "7"]))
    lines = ["query_id,session_id,position,doc_id,click", "007,1,1,d2,TRUE", "7,01,1,d4,false"]
    (tmp_path / "log.csv").write_text("\n".join(lines))
    log = read_log_table(tmp_path / "log.csv", candidates)
    assert_same_log(log, log_of(candidates, [1, 0], [[1], [2]], [[0], [1]]))


# What can be wrong.

GOOD = [
    {"query_id": "q0", "session_id": "a", "position": 1, "doc_id": "d2", "click": 0},
    {"query_id": "q0", "session_id": "a", "position": 2, "doc_id": "d0", "click": 1},
    {"query_id": "q0", "session_id": "a", "position": 3, "doc_id": "d1", "click": 0},
    {"query_id": "q1", "session_id": "b", "position": 1, "doc_id": "d3", "click": 0},
    {"query_id": "q1", "session_id": "b", "position": 2, "doc_id": "d4", "click": 0},
]


def problems_of(folder: Path, changes: dict[int, dict[str, Any]], name: str = "log.jsonl") -> list[str]:
    """What is said of the good rows when some, from row 1 on, are changed."""
    rows = [row | changes.get(number, {}) for number, row in enumerate(GOOD, start=1)]
    if name.endswith(".jsonl"):
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        WRITERS[name](pl.DataFrame(rows), folder / name)
    with pytest.raises(InputError) as raised:
        read_log_table(folder / name, CANDIDATES)
    prefix = f"{folder / name}: "
    assert all(problem.startswith(prefix) for problem in raised.value.problems)
    return [problem.removeprefix(prefix) for problem in raised.value.problems]


@pytest.mark.parametrize("name", ["log.jsonl", "log.csv", "log.parquet"])
@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({3: {"position": 4}}, f"session 'a': a gap between positions 2 and 4; {EVERY_DOCUMENT}"),
        ({3: {"position": 2}}, "session 'a': position 2 occurs twice"),
        ({4: {"position": 3}}, f"session 'b': the first position is 2, expected 1; {EVERY_DOCUMENT}"),
        ({5: {"doc_id": "d3"}}, "session 'b': the same document at positions 1, 2"),
        ({1: {"position": -1}}, "row 1: position: expected a whole number, counted from 1, found '-1'"),
        ({5: {"doc_id": "d9"}}, "row 5: doc_id: 'd9' is not among the documents of query 'q1' in the features"),
        ({5: {"doc_id": "d0"}}, "row 5: doc_id: 'd0' is not among the documents of query 'q1' in the features"),
        ({2: {"click": -2}}, "row 2: click: expected 0 or 1, found '-2'"),
        ({2: {"click": None}}, "row 2: click: expected 0 or 1, found null"),
        ({5: {"session_id": None}}, "row 5: session_id: expected a value, found null"),
        ({2: {"position": None}},
         "row 2: a click without an impression: expected a position and a doc_id, found null and 'd0'"),
        ({2: {"doc_id": None}},
         "row 2: a click without an impression: expected a position and a doc_id, found '2' and null"),
        ({3: {"position": None}}, "row 3: expected a position and a doc_id, found null and 'd1'"),
        ({3: {"doc_id": None}}, "row 3: expected a position and a doc_id, found '3' and null"),
    ],
)  # fmt: skip
def test_a_problem_is_told_in_one_line(
    name: str, changes: dict[int, dict[str, Any]], problem: str, tmp_path: Path
) -> None:
    assert problems_of(tmp_path, changes, name) == [problem]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({2: {"click": "yes"}}, "row 2: click: expected 0 or 1, found 'yes'"),
        ({2: {"click": 0.5}}, "row 2: click: expected 0 or 1, found '0.5'"),
        ({3: {"position": 2.5}}, "row 3: position: expected a whole number, counted from 1, found '2.5'"),
        ({3: {"position": "last"}}, "row 3: position: expected a whole number, counted from 1, found 'last'"),
        ({3: {"position": 1e10}}, "row 3: position: expected a whole number, counted from 1, found '10000000000'"),
    ],
)
def test_what_is_no_such_number_is_told(changes: dict[int, dict[str, Any]], problem: str, tmp_path: Path) -> None:
    assert problems_of(tmp_path, changes) == [problem]


def test_an_unknown_query_is_told_once(tmp_path: Path) -> None:
    assert problems_of(tmp_path, {4: {"query_id": "q7"}, 5: {"query_id": None}}) == [
        "row 4: query_id: 'q7' is not in the features",
        "row 5: query_id: null is not in the features",
    ]


def test_a_session_of_two_queries_is_told(tmp_path: Path) -> None:
    changes = {4: {"session_id": "a", "position": 4}, 5: {"session_id": "a", "position": 5}}
    assert problems_of(tmp_path, changes) == ["session 'a': expected rows of one query, found several queries"]


@pytest.mark.parametrize(
    ("column", "value", "problem"),
    [
        ("logging_propensity", 0, "logging_propensity: expected a float32 number above 0 and at most 1, found '0'"),
        ("logging_propensity", 1.5, "logging_propensity: expected a float32 number above 0 and at most 1, found '1.5'"),
        ("logging_propensity", None, "logging_propensity: expected a float32 number above 0 and at most 1, found null"),
        ("examination", 3, "examination: expected 0 or 1, found '3'"),
        ("examination", 0, "a click on a document that was not examined"),
        (
            "timestamp",
            None,
            "timestamp: expected a finite number or a time such as 2026-11-01T12:30, in the years 1 to 9999, "
            "found null",
        ),
    ],
)
def test_a_problem_in_an_optional_column_is_told(column: str, value: object, problem: str, tmp_path: Path) -> None:
    changes: dict[int, dict[str, Any]] = {row: {column: 1} for row in (1, 3, 4, 5)}
    assert problems_of(tmp_path, changes | {2: {column: value}}) == [f"row 2: {problem}"]


@pytest.mark.parametrize("name", ["log.csv", "log.parquet"])
@pytest.mark.parametrize("value", [1e-60, 1 + 1e-9])
def test_a_propensity_is_checked_as_it_is_stored_and_as_it_is_given(value: float, name: str, tmp_path: Path) -> None:
    changes = {row: {"logging_propensity": value if row == 2 else 0.5} for row in range(1, 6)}
    (problem,) = problems_of(tmp_path, changes, name)
    assert problem.startswith("row 2: logging_propensity: expected a float32 number above 0 and at most 1, found '1")


@pytest.mark.parametrize("name", ["log.csv", "log.parquet"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_time_that_is_no_number_is_told(value: float, name: str, tmp_path: Path) -> None:
    changes = {row: {"timestamp": value if row == 2 else 0.5} for row in range(1, 6)}
    expected = "a finite number or a time such as 2026-11-01T12:30, in the years 1 to 9999"
    problem = f"row 2: timestamp: expected {expected}, found '{value}'"
    assert problems_of(tmp_path, changes, name) == [problem]


@pytest.mark.parametrize("name", ["log.jsonl", "log.parquet"])
@pytest.mark.parametrize(
    ("column", "value", "found"),
    [
        ("query_id", "q0\0", r"'q0\0', 'a' and 'd1'"),
        ("session_id", "\0", r"'q0', '\0' and 'd1'"),
        ("doc_id", "d\0001", r"'q0', 'a' and 'd\01'"),
    ],
)
def test_an_id_with_a_nul_is_told(column: str, value: str, found: str, name: str, tmp_path: Path) -> None:
    problems = problems_of(tmp_path, {3: {column: value}}, name)
    assert problems[0] == f"row 3: expected ids without the character NUL, found {found}"
    assert not [problem for problem in problems[1:] if problem.startswith("row")]


def test_all_kinds_of_problems_are_told_at_once(tmp_path: Path) -> None:
    changes: dict[int, dict[str, Any]] = {1: {"click": -7}, 3: {"position": 5}, 4: {"doc_id": "d9"}, 5: {"position": 1}}
    assert problems_of(tmp_path, changes) == [
        "row 4: doc_id: 'd9' is not among the documents of query 'q1' in the features",
        "row 1: click: expected 0 or 1, found '-7'",
        "session 'b': position 1 occurs twice",
        f"session 'a': a gap between positions 2 and 5; {EVERY_DOCUMENT}",
    ]


def test_the_first_twenty_of_a_kind_are_told_and_the_rest_counted(tmp_path: Path) -> None:
    log = log_of(CANDIDATES, [0] * 30, [[2, 0]] * 30, [[0, 0]] * 30)
    table = rows_of(log).with_columns(click=pl.lit(-2), position=pl.col("position") * 2 - 1)
    table.write_parquet(tmp_path / "log.parquet")
    with pytest.raises(InputError) as raised:
        read_log_table(tmp_path / "log.parquet", CANDIDATES)
    problems = [problem.removeprefix(f"{tmp_path / 'log.parquet'}: ") for problem in raised.value.problems]
    assert problems == [
        *(f"row {row}: click: expected 0 or 1, found '-2'" for row in range(1, 21)),
        "… and 40 more of this kind",
        *(f"session 's{session:06d}': a gap between positions 1 and 3; {EVERY_DOCUMENT}" for session in range(20)),
        "… and 10 more of this kind",
    ]


def test_missing_columns_are_told_with_a_guess(tmp_path: Path) -> None:
    table = pl.DataFrame(GOOD).rename({"doc_id": "docid", "click": "bought"})
    table.write_csv(tmp_path / "log.csv")
    with pytest.raises(InputError) as raised:
        read_log_table(tmp_path / "log.csv", CANDIDATES)
    found = "found: query_id, session_id, position, docid, bought"
    assert raised.value.problems == [
        f"{tmp_path / 'log.csv'}: column 'doc_id' is missing (did you mean columns={{'doc_id': 'docid'}}?); {found}",
        f"{tmp_path / 'log.csv'}: column 'click' is missing; if it is called otherwise, say "
        f"columns={{'click': 'NAME'}}; {found}",
    ]


@pytest.mark.parametrize(
    ("column", "values", "problem"),
    [
        ("doc_id", [[1.5]] * 5, "column 'doc_id': expected text or whole numbers, found List"),
        ("position", [[1]] * 5, "column 'position': expected numbers, found List"),
        ("timestamp", [[1]] * 5, "column 'timestamp': expected numbers or dates and times, found List"),
        (
            "timestamp",
            [datetime.timedelta(1)] * 5,
            "column 'timestamp': expected numbers or dates and times, found Duration",
        ),
    ],
)
def test_a_column_of_the_wrong_type_is_told(column: str, values: list[Any], problem: str, tmp_path: Path) -> None:
    pl.DataFrame(GOOD).with_columns(pl.Series(column, values)).write_parquet(tmp_path / "log.parquet")
    with pytest.raises(InputError, match=problem):
        read_log_table(tmp_path / "log.parquet", CANDIDATES)


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("log.txt", b"", "whose name ends in .parquet, .csv"),
        ("log.csv", b"", "expected a table, found an empty file"),
        ("log.parquet", b"PAR1", "cannot be read"),
        ("log.jsonl", b"{", "cannot be read"),
        ("log.csv", b"query_id,session_id,position,doc_id,click\n", "expected a row for each shown document"),
        ("log.csv", b"query_id,session_id,position,doc_id,click\nq0,a,1,d0,0,9,9\n", "cannot be read"),
    ],
)
def test_what_is_no_table_is_refused(name: str, content: bytes, problem: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=problem):
        read_log_table(tmp_path / name, CANDIDATES)


def test_a_missing_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="file not found"):
        read_log_table(tmp_path / "log.csv", CANDIDATES)
    with pytest.raises(InputError, match="expected a file, found a folder or a device"):
        read_log_table(tmp_path, CANDIDATES)


def test_lists_of_no_positions_are_refused(tmp_path: Path) -> None:
    pl.DataFrame(GOOD).write_parquet(tmp_path / "log.parquet")
    with pytest.raises(InputError, match="k: expected a whole number >= 1, found 0"):
        read_log_table(tmp_path / "log.parquet", CANDIDATES, k=0)


def test_features_without_ids_are_refused(tmp_path: Path) -> None:
    pl.DataFrame(GOOD).write_parquet(tmp_path / "log.parquet")
    with pytest.raises(InputError, match="have no document ids"):
        read_log_table(tmp_path / "log.parquet", replace(CANDIDATES, document_ids=None))


def test_features_with_the_same_document_twice_are_refused(tmp_path: Path) -> None:
    pl.DataFrame(GOOD).write_parquet(tmp_path / "log.parquet")
    twice = replace(CANDIDATES, document_ids=np.array(["d0", "d1", "d0", "d0", "d1"]))
    with pytest.raises(InputError, match="such as 'd0' of query 'q0'"):
        read_log_table(tmp_path / "log.parquet", twice)


@pytest.mark.parametrize("k", [None, 2])
def test_one_long_list_among_many_short_ones_is_refused_unless_it_is_truncated(k: int | None, tmp_path: Path) -> None:
    """All lists take the room of the longest: 0.6 GB each column, for a file of some kilobytes."""
    long = pl.DataFrame({"session_id": 0, "position": range(1, 30_001), "doc_id": [f"d{i}" for i in range(30_000)]})
    short = pl.DataFrame({"session_id": range(1, 20_001), "position": 1, "doc_id": "d1"})
    rows = pl.concat([long, short], how="vertical_relaxed").with_columns(query_id=pl.lit("q"), click=0)
    if k is None:
        with pytest.raises(InputError, match=r"30,000 documents, 20,001 lists have 2\.5 on average; truncate .* k=N$"):
            read_with_report(rows, None)
        return
    log, _ = read_with_report(rows, None, ImportOptions(k=k, max_dropped=1))
    assert (len(log), log.k) == (20_001, 2)
