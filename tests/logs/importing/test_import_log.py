"""Import of logs, and what every registered format does with files that are not its own."""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import polars as pl
import pytest

import cuolr
from cuolr.errors import InputError, InputWarning
from cuolr.logs.importing.import_log import import_log_with_report
from cuolr.logs.importing.importer import IMPORTERS
from tests.data.small_data import assert_same_log, full_log

TABLE = pl.DataFrame(
    {
        "query_id": ["q0", "q0", "q1"],
        "session_id": [7, 7, 8],
        "position": [1, 2, 1],
        "doc_id": ["b", "a", "c"],
        "click": [False, True, True],
        "reward": [0.0, 2.5, 1.0],
    }
)
FEATURES = pl.DataFrame(
    {"query_id": ["q0", "q0", "q1"], "doc_id": ["a", "b", "c"], "price": [1.0, 2.0, 3.0], "age": [4, 5, 6]}
)


class Exported:
    """A table of a library that polars does not know, by Arrow's protocol."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self._frame = frame

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._frame.__arrow_c_stream__(requested_schema)


def to_pandas(frame: pl.DataFrame) -> Any:
    pandas: Any = pytest.importorskip("pandas")
    return pandas.DataFrame(frame.to_dict(as_series=False))


def to_pandas_categories(frame: pl.DataFrame) -> Any:
    return to_pandas(frame).astype({"query_id": "category", "doc_id": "category"})


LIBRARIES: list[Callable[[pl.DataFrame], Any]] = [
    pl.DataFrame.clone,
    pl.DataFrame.lazy,
    Exported,
    to_pandas,
    to_pandas_categories,
]


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_log_is_made_of_data_frames(library: Callable[[pl.DataFrame], Any]) -> None:
    log = cuolr.ClickLog.from_frame(library(TABLE), features=library(FEATURES))
    assert log.candidates.query_ids.tolist() == ["q0", "q1"]
    assert log.candidates.document_ids is not None
    assert log.candidates.document_ids.tolist() == ["a", "b", "c"]
    assert log.candidates.features.tolist() == [[1, 4], [2, 5], [3, 6]]
    assert log.query.tolist() == [0, 1]
    assert log.ranking.tolist() == [[1, 0], [0, -1]]
    assert log.clicks.tolist() == [[0, 1], [1, 0]]
    assert log.reward is not None
    assert log.reward.tolist() == [[0, 2.5], [1, 0]]


def test_files_and_data_frames_give_the_same_log(tmp_path: Path) -> None:
    TABLE.write_csv(tmp_path / "log.csv")
    FEATURES.write_parquet(tmp_path / "features.parquet")
    (tmp_path / "features.txt").write_text("0 qid:q0 1:1 2:4 # a\n0 qid:q0 1:2 2:5 # b\n0 qid:q1 1:3 2:6 # c\n")
    log = cuolr.import_log(TABLE, FEATURES)
    for table in (TABLE, str(tmp_path / "log.csv"), tmp_path / "log.csv"):
        for features in (tmp_path / "features.parquet", tmp_path / "features.txt", log.candidates):
            assert_same_log(cuolr.import_log(table, features), log)


def test_a_log_comes_back_from_its_data_frame() -> None:
    log = full_log()
    frame = log.to_frame()
    back = cuolr.import_log(frame.sample(fraction=1, shuffle=True, seed=0), log.candidates)
    for name, values in back.columns.items():
        np.testing.assert_array_equal(values, log.columns[name], err_msg=name, strict=True)
    assert log.columns.keys() - back.columns.keys() == {"page_position", "context.device", "context.columns"}


def test_the_data_frame_of_a_log_has_all_its_columns_with_positions_from_1() -> None:
    log = full_log()
    frame, (row, position) = log.to_frame(), np.nonzero(log.where)
    assert log.page_position is not None
    assert frame["position"].to_list() == (position + 1).tolist()
    assert frame["page_position"].to_list() == (log.page_position[row, position] + 1).tolist()
    assert frame["context.device"].to_list() == log.context["device"][row].tolist()
    assert "count" not in frame.columns
    assert "count" in cuolr.aggregate(log).to_frame().columns


def test_documents_without_ids_are_named_by_their_number_within_the_query() -> None:
    features = np.zeros((3, 1), np.float32)
    candidates = cuolr.Candidates(features, np.array([0, 1, 3]), np.array(["q0", "q1"]))
    ranking, clicks = np.array([[1, 0]], np.int16), np.zeros((1, 2), np.uint8)
    log = cuolr.ClickLog(candidates, np.array([1], np.int32), ranking, clicks, np.ones(1, np.int64))
    assert log.to_frame()["doc_id"].to_list() == ["2", "1"]


@pytest.mark.parametrize(
    ("table", "features", "problem"),
    [
        (
            TABLE.drop("click"),
            FEATURES,
            "the table: column 'click' is missing; if it is called otherwise",
        ),
        (TABLE.with_columns(doc_id=pl.lit("z")), FEATURES, "the table: row 1: doc_id: 'z' is not among the documents"),
        (TABLE.with_columns(reward=pl.lit(np.nan)), FEATURES, "the table: row 1: reward: expected a finite number"),
        (TABLE, FEATURES.drop("doc_id"), "the features: column 'doc_id' is missing"),
        (TABLE, FEATURES.rename({"age": "relevance"}), "the features: column 'relevance' looks like a relevance label"),
        (3, FEATURES, "the table: expected a path, or a DataFrame of polars or pandas, found an object of type int"),
        (TABLE, 3, "the features: expected a path, or a DataFrame of polars or pandas, found an object of type int"),
    ],
)
def test_problems_of_a_data_frame_are_told(table: Any, features: Any, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        cuolr.import_log(table, features)


def test_columns_of_mixed_types_are_told() -> None:
    pandas: Any = pytest.importorskip("pandas")
    mixed = to_pandas(TABLE).assign(doc_id=pandas.Series(["b", 3, "c"], dtype=object))
    with pytest.raises(InputError, match=r"the table: .*expected .* of one type"):
        cuolr.import_log(mixed, FEATURES)


DAMAGED = TABLE.with_columns(position=pl.Series([1, 3, 1]))


def test_what_is_repaired_is_counted_in_a_warning() -> None:
    said = r"^kept 2 of 2 sessions; repaired 1 session \(gap in the positions\)$"
    with pytest.warns(InputWarning, match=said):
        log = cuolr.import_log(DAMAGED, FEATURES)
    with pytest.warns(InputWarning, match=said):
        assert_same_log(cuolr.ClickLog.from_frame(DAMAGED, FEATURES), log)
    assert log.page_position is not None
    assert log.page_position.tolist() == [[0, 2], [0, -1]]


def test_the_report_comes_in_place_of_the_warning() -> None:
    log, report = cuolr.import_log_with_report(DAMAGED, FEATURES, cuolr.ImportOptions(k=1))
    assert log.k == 1
    assert [found.reason for found in report.repaired] == ["gap in the positions"]


@pytest.mark.parametrize("read", [cuolr.import_log, cuolr.ClickLog.from_frame])
def test_strict_refuses_what_could_be_repaired(read: Callable[..., cuolr.ClickLog]) -> None:
    with pytest.raises(InputError, match="the table: session '7': a gap between positions 1 and 3"):
        read(DAMAGED, FEATURES, strict=True)


def test_options_of_an_import_are_given_by_name() -> None:
    table = TABLE.rename({"doc_id": "sku"}).with_columns(pl.col("position") - 1)
    with pytest.warns(InputWarning, match="kept 2 of 2 sessions; positions start at 0 in the table"):
        log = cuolr.import_log(table, FEATURES, columns={"doc_id": "sku"}, k=1, max_dropped=0)
    assert_same_log(log, cuolr.import_log(TABLE, FEATURES, k=1, first_position=1))


def test_a_log_without_queries_is_one_query(tmp_path: Path) -> None:
    shown = pl.DataFrame(
        {
            "session_id": ["s", "s", "t", "t"],
            "position": [1, 2, 1, 2],
            "item": ["a", "b", "b", "c"],
            "click": [0, 1, 1, 0],
        }
    )
    items = pl.DataFrame({"item": ["a", "b", "c", "never shown"], "price": [1.0, 2.0, 3.0, 4.0]})
    named = {"doc_id": "item"}
    log = cuolr.import_log(shown, items, columns=named, one_query=True)
    assert log.candidates.query_ids.tolist() == ["all"]
    assert log.candidates.document_names[log.documents].tolist() == [["a", "b"], ["b", "c"]]
    assert log.candidates.n_documents == 4
    of_shown = cuolr.import_log(shown, cuolr.FeatureTables(document=items), columns=named, one_query=True)
    assert of_shown.candidates.n_documents == 3
    searched = shown.with_columns(query_id=pl.Series(["x", "x", "y", "y"]))
    assert_same_log(cuolr.import_log(searched, items, columns=named, one_query=True), log)
    with pytest.raises(InputError, match="column 'query_id' is missing"):
        cuolr.import_log(shown, items, columns=named)


def test_an_unknown_option_is_named() -> None:
    with pytest.raises(InputError, match=r"unknown option 'max_droped' .did you mean 'max_dropped'"):
        cuolr.import_log(pl.DataFrame(), pl.DataFrame(), max_droped=1)


def test_what_the_reward_is_made_of_is_no_feature() -> None:
    table = TABLE.drop("reward").with_columns(purchase=pl.Series([0, 1, 0]))
    for column in ("purchase", "click"):
        with pytest.raises(InputError, match=f"column '{column}' cannot be a feature"):
            cuolr.import_log(table, cuolr.FeatureTables(impression=(column,)), reward="click=1,purchase=10")
    with pytest.raises(InputError, match="expected each column once, found 'click=1,click=2'"):
        cuolr.import_log(table, FEATURES, reward="click=1,click=2")


def test_times_that_could_be_read_in_two_ways_are_refused(tmp_path: Path) -> None:
    for number, (text, good) in enumerate((("10/01/2026 12:00", False), ("2026-10-01 12:00", True))):
        path = tmp_path / f"{number}.csv"
        TABLE.drop("reward").with_columns(timestamp=pl.lit(text)).write_csv(path)
        if good:
            log = cuolr.import_log(path, FEATURES)
            assert log.timestamp is not None
            assert str(log.timestamp[0]).startswith("2026-10-01T12:00")
        else:
            with pytest.raises(InputError, match="timestamp"):
                cuolr.import_log(path, FEATURES)


def test_times_of_pandas_in_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({name: TABLE[name].to_list() for name in TABLE.columns})
    frame["timestamp"] = pandas.Series(np.array(["2026-11-01T10:00:00"] * 3, "datetime64[s]"))
    monkeypatch.setattr(pl, "from_pandas", mock.Mock(side_effect=ImportError))
    log = cuolr.import_log(frame, FEATURES)
    assert log.timestamp is not None
    assert str(log.timestamp[0]).startswith("2026-11-01T10:00:00")


def test_a_named_index_of_pandas_is_columns() -> None:
    table, features = to_pandas(TABLE), to_pandas(FEATURES)
    expected = cuolr.import_log(table, features)
    log = cuolr.import_log(table.set_index("session_id"), features.set_index(["query_id", "doc_id"]))
    assert log.to_frame().equals(expected.to_frame())
    unnamed = table.set_axis(range(5, 5 + len(table)))
    assert cuolr.import_log(unnamed, features).to_frame().equals(expected.to_frame())


def test_columns_of_pandas_that_occur_twice_or_have_mixed_values_are_told_in_a_line() -> None:
    pandas: Any = pytest.importorskip("pandas")
    features = to_pandas(FEATURES)
    name = features.columns[-1]
    with pytest.raises(InputError, match=f"^the features: column '{name}' occurs twice; keep one$"):
        cuolr.import_log(to_pandas(TABLE), pandas.concat([features, features[[name]]], axis=1))
    mixed = features.assign(mixed=[1, "a", None, 2.5][: len(features)])
    with pytest.raises(InputError, match=r"column 'mixed': expected values of one type: ") as raised:
        cuolr.import_log(to_pandas(TABLE), mixed)
    assert "\n" not in str(raised.value)


CLICKS = pl.DataFrame({"query_id": ["q"], "session_id": ["s"], "position": [1], "doc_id": ["d"], "click": [1]})
# Columns that formats look for, of types that they do not expect.
CONFUSED_COLUMNS = """
    query_doc_ids clicks query_no text_md5 query_md5 position click item_id timestamp propensity_score srch_id prop_id
    date_time random_bool click_bool booking_bool price_usd session_id doc_id
"""
CONFUSED = pl.DataFrame({name: ["x", "y"] for name in CONFUSED_COLUMNS.split()})
FOREIGN: dict[str, Callable[[Path], object]] = {
    "empty.csv": lambda path: path.write_bytes(b""),
    "empty.parquet": lambda path: path.write_bytes(b""),
    "binary.feather": lambda path: path.write_bytes(bytes(range(256)) * 8),
    "binary.txt": lambda path: path.write_bytes(bytes(range(256)) * 8),
    "text.txt": lambda path: path.write_text("a line\nand another\n"),
    "header.csv": lambda path: path.write_text(",".join(CONFUSED.columns) + "\n"),
    "confused.csv": lambda path: CONFUSED.write_csv(path),
    "confused.parquet": lambda path: CONFUSED.write_parquet(path),
    "confused.feather": lambda path: CONFUSED.write_ipc(path),
    "cut.csv.gz": lambda path: path.write_bytes(gzip.compress(CONFUSED.write_csv().encode() * 50)[:60]),
    "records.ndjson": lambda path: path.write_text('{"a": 1}\n[2]\n'),
}


@pytest.mark.parametrize("file", FOREIGN)
@pytest.mark.parametrize("name", IMPORTERS.names())
def test_a_foreign_file_is_refused_with_a_few_lines(name: str, file: str, tmp_path: Path) -> None:
    FOREIGN[file](tmp_path / file)
    with pytest.raises(InputError) as error:
        import_log_with_report(tmp_path / file, format=name)
    assert 1 <= len(error.value.problems) <= 20
    assert all(problem and "\n" not in problem for problem in error.value.problems)


@pytest.mark.parametrize("name", IMPORTERS.names())
def test_a_file_that_is_not_there_is_one_line(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not found") as error:
        import_log_with_report(tmp_path / "nowhere.csv", format=name)
    assert len(error.value.problems) == 1


@pytest.mark.parametrize("name", sorted(set(IMPORTERS.names()) - {"table"}))
def test_a_data_frame_is_for_tables_only(name: str) -> None:
    with pytest.raises(InputError, match=f"format '{name}': expected files"):
        import_log_with_report(CLICKS, format=name)


def test_a_table_may_be_a_data_frame() -> None:
    log, report = import_log_with_report(CLICKS)
    assert (log.sessions, report.source_notes) == (
        1,
        ("the log has no features: it serves for examination, click rates and judgments",),
    )
