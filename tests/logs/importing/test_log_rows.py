"""Many files, other column names, and where each row is."""

import gzip
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from cuolr.errors import InputError
from cuolr.logs.importing.import_log import import_log, import_log_with_report
from cuolr.logs.importing.import_options import ImportOptions
from cuolr.logs.importing.log_rows import find_tables
from cuolr.logs.importing.table import read_log_table
from tests.data.small_data import assert_same_log, candidates_of, full_log, random_log

CANDIDATES = candidates_of(3, 2)
ROWS = pl.DataFrame(
    {
        "query_id": ["q0", "q0", "q1"],
        "session_id": ["a", "a", "b"],
        "position": [1, 2, 1],
        "doc_id": ["d0", "d1", "d3"],
        "click": [0, 1, 0],
    }
)


def test_files_of_all_kinds_make_one_log(tmp_path: Path) -> None:
    log = random_log(candidates_of(5, 2, 9), sessions=60, k=4)
    rows = log.to_frame()
    parts = [rows.filter(pl.col("session_id") % 6 == part) for part in range(6)]
    parts[0].write_parquet(tmp_path / "0.parquet")
    parts[1].write_ipc(tmp_path / "1.feather", compression="zstd")
    (tmp_path / "2.csv.gz").write_bytes(gzip.compress(parts[2].write_csv().encode()))
    parts[3].lazy().sink_csv(tmp_path / "3.csv.zst", compression="zstd")
    (tmp_path / "4.jsonl.gz").write_bytes(gzip.compress(parts[4].write_ndjson().encode()))
    parts[5].write_csv(tmp_path / "5.tsv", separator="\t")
    imported, report = read_log_table(str(tmp_path / "*"), log.candidates)
    # Ids that are text in some files are text in all.
    text = rows.with_columns(pl.col("session_id").cast(pl.String))
    assert_same_log(imported, read_log_table(text, log.candidates, ImportOptions(strict=True))[0])
    assert [Path(name).name[0] for name in report.tables] == list("012345")
    assert report.is_clean


def test_a_session_may_be_in_several_files(tmp_path: Path) -> None:
    log = full_log()
    rows = log.to_frame().drop("page_position")
    rows[::2].write_parquet(tmp_path / "day-1.parquet")
    rows[1::2].write_parquet(tmp_path / "day-2.parquet")
    imported, _ = read_log_table(tmp_path / "day-?.parquet", log.candidates)
    assert_same_log(imported, read_log_table(rows, log.candidates, ImportOptions(strict=True))[0])


def test_rows_are_numbered_by_file(tmp_path: Path) -> None:
    ROWS.write_csv(tmp_path / "day-1.csv")
    ROWS.with_columns(session_id=pl.col("session_id") + "2", click=pl.Series([0, -5, 0])).write_csv(
        tmp_path / "day-2.csv"
    )
    _, report = read_log_table(tmp_path / "day-*.csv", CANDIDATES, ImportOptions(max_dropped=1))
    assert report.dropped[0].examples == (f"{tmp_path}/day-2.csv: row 2: click: expected 0 or 1, found '-5'",)
    with pytest.raises(InputError) as raised:
        read_log_table(tmp_path / "day-*.csv", CANDIDATES, ImportOptions(strict=True))
    assert raised.value.problems == [f"{tmp_path}/day-2.csv: row 2: click: expected 0 or 1, found '-5'"]


def test_a_problem_of_a_session_over_several_files_is_told_of_all(tmp_path: Path) -> None:
    ROWS.write_csv(tmp_path / "1.csv")
    ROWS.write_csv(tmp_path / "2.csv")
    with pytest.raises(InputError, match=r"^2 files: session 'a': position 1 occurs twice"):
        read_log_table([tmp_path / "1.csv", tmp_path / "2.csv"], CANDIDATES, ImportOptions(strict=True))


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (pl.Series([1, 2, 3]), pl.Series([1.5, 2.5, 3.5]), [1.0, 3.0, 1.5, 3.5]),
        (pl.Series([1, 2, 3], dtype=pl.Int16), pl.Series([4, 5, 6]), [1, 3, 4, 6]),
    ],
)
def test_times_of_different_types_are_brought_together(
    first: pl.Series, second: pl.Series, expected: list[Any], tmp_path: Path
) -> None:
    ROWS.with_columns(timestamp=first).write_parquet(tmp_path / "1.parquet")
    later = ROWS.with_columns(session_id=pl.col("session_id") + "2", timestamp=second)
    later.write_parquet(tmp_path / "2.parquet")
    log, _ = read_log_table(tmp_path / "*.parquet", CANDIDATES)
    assert log.timestamp is not None
    assert sorted(log.timestamp.tolist()) == sorted(expected)


def test_numbers_and_times_together_are_refused(tmp_path: Path) -> None:
    ROWS.with_columns(timestamp=pl.lit(1)).write_parquet(tmp_path / "1.parquet")
    ROWS.with_columns(timestamp=pl.date(2024, 1, 1)).write_parquet(tmp_path / "2.parquet")
    with pytest.raises(InputError, match="column 'timestamp': expected numbers in all files, or times in all"):
        read_log_table(tmp_path / "*.parquet", CANDIDATES)


def test_a_column_that_some_files_lack_is_told(tmp_path: Path) -> None:
    ROWS.with_columns(reward=pl.lit(1.0)).write_parquet(tmp_path / "1.parquet")
    ROWS.write_parquet(tmp_path / "2.parquet")
    with pytest.raises(InputError, match=r"2.parquet: column 'reward' is missing, which .*1.parquet has"):
        read_log_table(tmp_path / "*.parquet", CANDIDATES)


def test_a_path_that_exists_is_no_pattern(tmp_path: Path) -> None:
    for name in ("l[1].csv", "l1.csv"):
        (tmp_path / name).touch()
    assert list(find_tables([tmp_path / "l[1].csv"])) == [tmp_path / "l[1].csv"]
    assert list(find_tables([str(tmp_path / "l*")])) == [tmp_path / "l1.csv", tmp_path / "l[1].csv"]


@pytest.mark.parametrize(
    ("patterns", "problem"),
    [
        (["*.csv"], r"\*.csv: no file matches"),
        (["a.txt", "a.*"], "a.txt: given twice; give each table once"),
        ([], "expected files to import, found none"),
        ([3], "expected paths of tables, found an object of type int"),
    ],
)
def test_patterns_that_name_no_tables_are_refused(
    patterns: list[Any], problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").touch()
    with pytest.raises(InputError, match=problem):
        list(find_tables(patterns))


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_columns_may_have_other_names(ending: str, tmp_path: Path) -> None:
    # There is a column of our name, too, and ids that would change as numbers.
    candidates = candidates_of(3, 2)
    table = ROWS.rename({"doc_id": "product_id", "position": "rank"}).with_columns(doc_id=pl.lit("007"))
    write = {"csv": pl.DataFrame.write_csv, "jsonl": pl.DataFrame.write_ndjson, "parquet": pl.DataFrame.write_parquet}
    write[ending](table, tmp_path / f"log.{ending}")  # type: ignore[operator]
    options = ImportOptions(columns={"doc_id": "product_id", "position": "rank"})
    log, _ = read_log_table(tmp_path / f"log.{ending}", candidates, options)
    assert_same_log(log, read_log_table(ROWS, candidates)[0])


def test_a_missing_column_is_told_with_the_parameter_that_names_another() -> None:
    table = ROWS.rename({"doc_id": "product_id", "position": "rank", "click": "x"})
    with pytest.raises(InputError) as raised:
        read_log_table(table, CANDIDATES)
    found = "found: query_id, session_id, rank, product_id, x"
    assert raised.value.problems == [
        f"the table: column 'position' is missing (did you mean columns={{'position': 'rank'}}?); {found}",
        f"the table: column 'doc_id' is missing (did you mean columns={{'doc_id': 'product_id'}}?); {found}",
        f"the table: column 'click' is missing; if it is called otherwise, say columns={{'click': 'NAME'}}; {found}",
    ]
    with pytest.raises(InputError, match=r"column 'products_id' is missing \(did you mean columns={'doc_id': 'pr"):
        read_log_table(table, CANDIDATES, ImportOptions(columns={"doc_id": "products_id"}))


def test_an_optional_column_that_is_named_must_be_there() -> None:
    with pytest.raises(InputError, match="column 'revenue' is missing; found"):
        read_log_table(ROWS, CANDIDATES, ImportOptions(columns={"reward": "revenue"}))


@pytest.mark.parametrize("separator", [";", "\t", "|"])
@pytest.mark.parametrize("name", ["log.csv", "log.csv.gz"])
def test_another_separator_is_recognised(separator: str, name: str, tmp_path: Path) -> None:
    text = ROWS.write_csv(separator=separator).encode()
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    log, _ = read_log_table(tmp_path / name, CANDIDATES)
    ROWS.write_csv(tmp_path / "commas.csv")
    with_commas, _ = read_log_table(tmp_path / "commas.csv", CANDIDATES)
    assert log.documents.tolist() == with_commas.documents.tolist()
    assert log.clicks.tolist() == with_commas.clicks.tolist()


def test_another_separator_is_told_where_it_is_not_recognised(tmp_path: Path) -> None:
    everything_in_one = pl.DataFrame({"query_id;session_id;position": ["q;s;1"]})
    with pytest.raises(InputError, match="expected columns separated by commas, found ';'; save the table with commas"):
        read_log_table(everything_in_one, CANDIDATES)


def test_the_columns_that_were_found_are_those_of_the_table() -> None:
    with pytest.raises(InputError, match=r"column 'click' is missing.*; found: session_id, position, doc_id$"):
        read_log_table(ROWS.drop("query_id", "click"), CANDIDATES, ImportOptions(one_query=True))


def test_whole_numbers_that_pandas_made_floats_are_ids() -> None:
    ids = {"query_id": [7.0, 7.0, 7.0], "session_id": [1.0, 1.0, 10.0], "user_id": [5.0, None, float("nan")]}
    table = pl.DataFrame({**ids, "position": [1, 2, 1], "doc_id": [2.0, 3.0, 2.0], "click": [0, 1, 0]})
    features = pl.DataFrame({"query_id": [7.0, 7.0], "doc_id": [2.0, 3.0], "x": [1.0, 2.0]})
    log = import_log(table, features)
    assert log.candidates.query_ids.tolist() == ["7"]
    assert log.candidates.document_ids.tolist() == ["2", "3"]  # type: ignore[union-attr]
    assert log.session_id.tolist() == ["1", "10"]  # type: ignore[union-attr]
    assert log.user_id.tolist() == ["5", ""]  # type: ignore[union-attr]


@pytest.mark.parametrize(("dtype", "too_large"), [(pl.Float64, 2.0**53 + 2), (pl.Float32, 2.0**24 + 2)])
def test_floats_that_stand_for_several_whole_numbers_are_no_ids(dtype: type[pl.DataType], too_large: float) -> None:
    documents = pl.Series("doc_id", [1.0, too_large, 1.5], dtype)
    table = pl.DataFrame({"query_id": ["q"] * 3, "session_id": [1, 2, 3], "position": [1] * 3, "click": [0, 1, 1]})
    features = pl.DataFrame({"query_id": ["q"], "doc_id": ["1"], "x": [1.0]})
    _, report = import_log_with_report(table.with_columns(documents), features, ImportOptions(max_dropped=1))
    row_2 = "a click without an impression: expected a position and a doc_id, found '1' and null"
    row_3 = "doc_id: '1.5' is not among the documents of query 'q' in the features"
    assert {found.reason: found.examples for found in report.dropped} == {
        "no position or no doc_id": (f"the table: row 2: {row_2}",),
        "no document with features": (f"the table: row 3: {row_3}",),
    }


def test_positions_from_0_are_told_with_the_parameter_if_nothing_is_repaired() -> None:
    table = ROWS.with_columns(pl.col("position") - 1)
    with pytest.raises(InputError) as raised:
        read_log_table(table, CANDIDATES, ImportOptions(strict=True))
    assert raised.value.problems[0] == "the table: positions seem to be counted from 0; if so, say first_position=0"
    assert len(read_log_table(table, CANDIDATES, ImportOptions(strict=True, first_position=0))[0])


def test_one_column_of_context_needs_no_list() -> None:
    assert ImportOptions(context="device").context == ("device",)


@pytest.mark.parametrize("options", [{"max_dropped": "5%"}, {"k": "10"}])
def test_texts_are_no_numbers(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"expected .* found (5%|10)"):
        ImportOptions(**options)


def test_a_table_without_rows_is_told() -> None:
    with pytest.raises(InputError, match="expected a row for each shown document, found no rows"):
        read_log_table(pl.DataFrame({name: [] for name in ROWS.columns}), CANDIDATES)
