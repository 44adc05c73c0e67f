"""What is repaired, what is dropped, and what is said of it."""

from typing import Any

import polars as pl
import pytest

from cuolr.errors import InputError
from cuolr.logs.importing.import_options import FirstPosition, ImportOptions
from cuolr.logs.importing.import_report import CUT, Amounts, ImportReport, TooManyDroppedError
from cuolr.logs.importing.table import read_log_table
from tests.data.small_data import assert_same_log, candidates_of

CANDIDATES = candidates_of(3, 2)  # d0, d1, d2 of q0; d3, d4 of q1
ANY = ImportOptions(max_dropped=1)


def table_of(*rows: tuple[Any, Any, Any, Any, Any], **more: list[Any]) -> pl.DataFrame:
    """Rows of session, query, position, document and click."""
    names = ["session_id", "query_id", "position", "doc_id", "click"]
    return pl.DataFrame(rows, schema=names, orient="row", strict=False).with_columns(
        pl.Series(name, values) for name, values in more.items()
    )


def lost(report: ImportReport) -> dict[str, tuple[int, int, int]]:
    return {
        found.reason: (found.amounts.sessions, found.amounts.impressions, found.amounts.clicks)
        for found in report.dropped
    }


def repaired(report: ImportReport) -> dict[str, int]:
    return {found.reason: found.amounts.sessions for found in report.repaired}


OTHER = (("b", "q1", 1, "d3", 0), ("b", "q1", 2, "d4", 1))


def test_lists_move_up_and_their_positions_on_the_page_are_kept() -> None:
    late = (("a", "q0", 11, "d2", 0), ("a", "q0", 14, "d0", 1), ("a", "q0", 12, "d1", 0))
    log, report = read_log_table(table_of(*late, *OTHER), CANDIDATES)
    assert log.ranking.tolist() == [[2, 1, 0], [0, 1, -1]]
    assert log.clicks.tolist() == [[0, 0, 1], [0, 1, 0]]
    assert log.page_position is not None
    assert log.page_position.tolist() == [[10, 11, 13], [0, 1, -1]]
    assert log.page_position.dtype == "int32"
    assert report.dropped == ()
    assert repaired(report) == {"list that starts late": 1, "gap in the positions": 1}
    assert [found.examples for found in report.repaired] == [
        ("the table: row 1: session 'a': the first position is 11, expected 1",),
        ("the table: row 1: session 'a': a gap between positions 12 and 14",),
    ]


def test_a_document_without_features_leaves_a_gap_and_its_click_is_counted() -> None:
    rows = (("a", "q0", 1, "d2", 0), ("a", "q0", 2, "gone", 1), ("a", "q0", 3, "d3", 0), ("a", "q0", 4, "d0", 1))
    log, report = read_log_table(table_of(*rows, *OTHER), CANDIDATES, ANY)
    assert log.ranking.tolist() == [[2, 0], [0, 1]]
    assert log.clicks.tolist() == [[0, 1], [0, 1]]
    assert log.page_position is not None
    assert log.page_position.tolist() == [[0, 3], [0, 1]]
    assert repaired(report) == {"document without features": 1}
    assert lost(report) == {"document without features": (0, 2, 1)}
    assert report.dropped[0].examples == (
        "the table: row 2: doc_id: 'gone' is not among the documents of query 'q0' in the features",
        "the table: row 3: doc_id: 'd3' is not among the documents of query 'q0' in the features",
    )


def test_a_session_without_a_document_that_is_left_is_dropped() -> None:
    log, report = read_log_table(table_of(("a", "q0", 1, "gone", 1), *OTHER), CANDIDATES, ANY)
    assert log.ranking.tolist() == [[0, 1]]
    assert lost(report) == {"no document with features": (1, 1, 1)}
    assert report.read == Amounts(2, 3, 2)
    assert report.kept == Amounts(1, 2, 1)


@pytest.mark.parametrize(
    ("row", "reason", "example"),
    [
        (("a", "q0", 1, "d1", 0), "position twice", "row 1: session 'a': position 1 occurs twice"),
        (("a", "q0", 2, "d0", 0), "document twice", "row 1: session 'a': the same document at positions 1, 2"),
        (("a", "q1", 2, "d3", 0), "several queries", "row 1: session 'a': several queries"),
        (("a", "q7", 2, "d1", 0), "unknown query", "row 2: query_id: "),
        (("a", None, 2, "d1", 0), "unknown query", "row 2: query_id: "),
        (("a", "q0", 2, "d1", -5), "click that is not 0 or 1", "row 2: click: expected 0 or 1, found '-5'"),
        (("a", "q0", 2, "d1", None), "click that is not 0 or 1", "row 2: click: expected 0 or 1, found null"),
        (("a", "q0", None, "d1", 0), "no position or no doc_id", "row 2: expected a position and a doc_id, found null"),
        (("a", "q0", 2, None, 0), "no position or no doc_id", "row 2: expected a position and a doc_id, found '2'"),
        (("a", "q0", -3, "d1", 0), "position that is not a whole number, counted from 1", "row 2: position: expected"),
        (("a", "q0", 2, "d1\0", 0), "id with the character NUL", "row 2: expected ids without the character NUL"),
    ],
)
def test_a_session_that_cannot_be_repaired_is_dropped_as_a_whole(row: Any, reason: str, example: str) -> None:
    log, report = read_log_table(table_of(("a", "q0", 1, "d0", 1), row, *OTHER), CANDIDATES, ANY)
    assert log.ranking.tolist() == [[0, 1]]
    assert lost(report) == {reason: (1, 2, 1)}
    (line,) = report.dropped[0].examples
    assert line.startswith(f"the table: {example}")


def test_rows_without_a_session_are_dropped_one_by_one() -> None:
    rows = ((None, "q0", 1, "d0", 1), (None, "q7", 1, "d0", -7), *OTHER)
    log, report = read_log_table(table_of(*rows), CANDIDATES, ANY)
    assert len(log) == 1
    assert lost(report) == {"no session_id": (0, 2, 1)}


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("logging_propensity", 0, "logging_propensity that is not a float32 number above 0 and at most 1"),
        ("examination", 0, "a click on a document that was not examined"),
        ("reward", float("nan"), "reward that is not a finite number"),
        ("timestamp", None, "timestamp that is not a finite number or a time"),
    ],
)
def test_a_session_with_a_bad_value_of_an_optional_column_is_dropped(column: str, value: Any, reason: str) -> None:
    table = table_of(("a", "q0", 1, "d0", 1), *OTHER, **{column: [value, 1, 1]})
    log, report = read_log_table(table, CANDIDATES, ANY)
    assert len(log) == 1
    assert lost(report) == {reason: (1, 1, 1)}


def test_a_session_is_counted_under_one_reason_only() -> None:
    rows = (("a", "q7", 1, "d0", -5), ("a", "q0", 1, "d0", 1), *OTHER)
    assert lost(read_log_table(table_of(*rows), CANDIDATES, ANY)[1]) == {"unknown query": (1, 2, 1)}


def test_the_time_of_a_session_is_its_earliest_also_of_a_removed_document() -> None:
    rows = (("a", "q0", 1, "gone", 0), ("a", "q0", 2, "d0", 1), *OTHER)
    log, _ = read_log_table(table_of(*rows, timestamp=[3, 4, 9, 8]), CANDIDATES, ANY)
    assert log.timestamp is not None
    assert log.timestamp.tolist() == [3, 8]


def test_at_most_three_examples_are_given_a_session_each() -> None:
    rows = [(session, "q0", position, f"d{position - 1}", -9) for session in range(5) for position in (1, 2)]
    _, report = read_log_table(table_of(*rows, (9, "q1", 1, "d3", 0)), CANDIDATES, ANY)
    assert report.dropped[0].examples == tuple(
        f"the table: row {row}: click: expected 0 or 1, found '-9'" for row in (1, 3, 5)
    )


# Where positions start.


ZERO_BASED = table_of(("b", "q1", 0, "d3", 0), ("b", "q1", 1, "d4", 1))


@pytest.mark.parametrize("first", ["auto", 0])
def test_positions_from_0_are_found_out_and_said(first: FirstPosition) -> None:
    log, report = read_log_table(ZERO_BASED, CANDIDATES, ImportOptions(first_position=first))
    assert_same_log(log, read_log_table(table_of(*OTHER), CANDIDATES)[0])
    assert report.first_position == 0
    assert report.notes == ["positions start at 0 in the table"]
    assert not report.is_clean


def test_a_single_zero_among_many_ones_is_an_error_in_that_session() -> None:
    rows = [(f"s{session}", "q0", 1, "d0", 0) for session in range(30)]
    log, report = read_log_table(table_of(*rows, ("t", "q0", 0, "d0", 0)), CANDIDATES)
    assert len(log) == 30
    assert log.page_position is None
    assert lost(report) == {"position that is not a whole number, counted from 1": (1, 1, 0)}


def test_positions_start_where_they_are_said_to() -> None:
    with pytest.raises(TooManyDroppedError, match="position: expected a whole number, counted from 1, found '0'"):
        read_log_table(ZERO_BASED, CANDIDATES, ImportOptions(first_position=1))
    log, _ = read_log_table(table_of(*OTHER), CANDIDATES, ImportOptions(first_position=0))
    assert log.page_position is not None
    assert log.page_position.tolist() == [[1, 2]]


def test_strict_takes_positions_from_0_only_if_told() -> None:
    with pytest.raises(InputError, match="row 1: position: expected a whole number, counted from 1, found '0'"):
        read_log_table(ZERO_BASED, CANDIDATES, ImportOptions(strict=True))
    options = ImportOptions(strict=True, first_position=0)
    assert read_log_table(ZERO_BASED, CANDIDATES, options)[0].ranking.tolist() == [[0, 1]]
    with pytest.raises(InputError, match="the table: session 'b': the first position is 1, expected 0"):
        read_log_table(table_of(*OTHER), CANDIDATES, options)


# The limits.


def sessions(good: int, bad: int) -> pl.DataFrame:
    return table_of(*((f"s{i}", "q0", 1, "d0", 1 if i < good else -5) for i in range(good + bad)))


def test_too_much_that_is_dropped_stops_with_the_report() -> None:
    assert len(read_log_table(sessions(95, 5), CANDIDATES)[0]) == 95
    with pytest.raises(TooManyDroppedError) as raised:
        read_log_table(sessions(94, 6), CANDIDATES)
    assert raised.value.problems == [
        "the table: 6.0% of the sessions cannot be used, more than max_dropped = 0.05 allows",
        "dropped: click that is not 0 or 1: 6 sessions, 6 impressions",
        *(f"the table: row {row}: click: expected 0 or 1, found '-5'" for row in (95, 96, 97)),
    ]
    assert len(read_log_table(sessions(94, 6), CANDIDATES, ImportOptions(max_dropped=0.06))[0]) == 94


def test_a_row_that_repeats_another_is_left_out_and_does_not_count_for_the_limit() -> None:
    rows = (("a", "q0", 1, "d0", 1), ("a", "q0", 2, "d1", 0))
    log, report = read_log_table(table_of(*rows, *rows, rows[0], *OTHER), CANDIDATES)
    assert_same_log(log, read_log_table(table_of(*rows, *OTHER), CANDIDATES)[0])
    assert lost(report) == {"row that repeats another": (0, 3, 2)}
    assert report.dropped[0].examples == tuple(f"the table: row {row}: the same as an earlier row" for row in (3, 4, 5))
    assert report.read.impressions == report.kept.impressions + 3
    assert report.read.clicks == report.kept.clicks + 2


@pytest.mark.parametrize(
    "again",
    [
        ("a", "q0", 1, "d0", 0),  # clicked or not?
        ("a", "q0", 1, "d1", 1),
    ],
)
def test_rows_of_one_position_that_differ_are_no_repeats(again: tuple[Any, Any, Any, Any, Any]) -> None:
    rows = (("a", "q0", 1, "d0", 1), ("c", "q0", 1, "d0", 0), ("c", "q0", 1, "d0", 0), again)
    _, report = read_log_table(table_of(*rows, *OTHER), CANDIDATES, ANY)
    assert lost(report) == {"position twice": (1, 2, 1 + again[-1]), "row that repeats another": (0, 1, 0)}


def test_documents_without_features_are_no_repeats_of_each_other() -> None:
    rows = (("a", "q0", 1, "gone", 1), ("a", "q0", 1, "gone, too", 1), *OTHER)
    assert lost(read_log_table(table_of(*rows), CANDIDATES, ANY)[1]) == {"position twice": (1, 2, 2)}


@pytest.mark.parametrize(
    "second",
    [
        pytest.param(("visit", "q1", 1, "d3", 0), id="two searches of a visit"),
        pytest.param(("visit", "q0", 1, "d1", 0), id="the same number on another day"),
    ],
)
def test_ids_of_several_lists_are_told_as_such(second: tuple[Any, Any, Any, Any, Any]) -> None:
    with pytest.raises(TooManyDroppedError) as raised:
        read_log_table(table_of(("visit", "q0", 1, "d0", 1), second, ("other", "q0", 1, "d0", 0)), CANDIDATES)
    assert raised.value.headline == (
        "the table: 100.0% of the clicks cannot be used, more than max_dropped = 0.05 allows; session_id seems to "
        "stand for several shown lists, such as those of a visit, or of the same number on another day: give each list "
        "an id of its own"
    )


def test_documents_without_features_count_for_the_limit() -> None:
    rows = (("a", "q0", 1, "d0", 0), ("a", "q0", 2, "gone", 0))
    with pytest.raises(TooManyDroppedError, match=r"50\.0% of the impressions cannot be used"):
        read_log_table(table_of(*rows), CANDIDATES)


def test_a_log_of_which_nothing_is_left_is_refused_whatever_the_limit() -> None:
    with pytest.raises(TooManyDroppedError, match="the table: no session can be used"):
        read_log_table(sessions(0, 3), CANDIDATES, ANY)
    with pytest.raises(TooManyDroppedError, match="the table: no session can be used"):
        read_log_table(sessions(2, 0).with_columns(session_id=pl.lit(None, pl.String)), CANDIDATES, ANY)


def test_lists_are_cut_after_they_moved_up_which_the_limit_allows() -> None:
    late = (("a", "q0", 11, "d2", 0), ("a", "q0", 12, "d0", 1), ("a", "q0", 13, "d1", 1))
    log, report = read_log_table(table_of(*late, *OTHER), CANDIDATES, ImportOptions(k=2))
    assert log.ranking.tolist() == [[2, 0], [0, 1]]
    assert lost(report) == {CUT: (0, 1, 1)}
    assert report.kept == Amounts(2, 4, 2)


def test_a_gap_that_is_cut_off_leaves_no_positions_on_the_page() -> None:
    gap = (("a", "q0", 1, "d2", 0), ("a", "q0", 3, "d0", 1))
    assert read_log_table(table_of(*gap, *OTHER), CANDIDATES, ImportOptions(k=1))[0].page_position is None


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"max_dropped": 1.5}, "max_dropped: expected 0 to 1, found 1.5"),
        ({"k": 0}, "k: expected a whole number >= 1, found 0"),
        ({"first_position": 2}, "first_position: expected 'auto', 0 or 1, found 2"),
        ({"columns": {"docid": "x"}}, "columns: expected one of query_id, session_id, .*, found 'docid'"),
    ],
)
def test_options_that_cannot_be_are_refused(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        ImportOptions(**given)


def test_the_report_is_one_for_programs_and_without_examples_has_no_ids() -> None:
    _, report = read_log_table(table_of(("secret", "q0", 1, "d0", -5), *OTHER), CANDIDATES, ANY)
    assert report.to_dict()["dropped"] == [
        {
            "reason": "click that is not 0 or 1",
            "examples": ["the table: row 1: click: expected 0 or 1, found '-5'"],
            "sessions": 1,
            "impressions": 1,
            "clicks": 0,
        }
    ]
    assert "row 1" not in str(report.to_dict(examples=False))
    assert report.summary() == "kept 1 of 2 sessions; dropped 1 session, 1 impression (click that is not 0 or 1)"


@pytest.mark.parametrize(("click", "note"), [(0, "no document was clicked"), (1, "every document was clicked")])
def test_a_log_of_clicks_only_or_without_any_is_noted(click: int, note: str) -> None:
    _, report = read_log_table(sessions(100, 0).with_columns(click=pl.lit(click)), CANDIDATES)
    assert not report.is_clean
    assert note in report.summary()
