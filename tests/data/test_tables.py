import gzip
import json
import time
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from cuolr.data import compressed_files, line_blocks
from cuolr.data.compressed_files import _block_sizes, check_zstandard, count_parquet_rows, open_gzip
from cuolr.data.features import read_feature_table
from cuolr.data.frames import collect_rows
from cuolr.data.letor.reader import read_letor
from cuolr.data.line_blocks import json_columns
from cuolr.data.tables import ROW, read_errors, scan_table, write_errors
from cuolr.data.text_sizes import check_prefixed_texts
from cuolr.errors import InputError
from cuolr.logs.importing.import_log import import_log_with_report
from cuolr.logs.importing.source_tables import read_fields
from cuolr.progress import no_progress, no_stages

CSV = "id,row,n\n007,x,1\n8,y,2\n"
JSON_LINES = '{"id": "007", "row": "x", "n": 1}\n{"id": 8, "row": "y", "n": 2}\n'


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("table.csv", CSV.encode()),
        ("TABLE.CSV", CSV.encode()),
        ("table.csv.gz", gzip.compress(CSV.encode(), mtime=0)),
        ("table.tsv", CSV.replace(",", "\t").encode()),
        ("table.jsonl", JSON_LINES.encode()),
        ("table.ndjson", JSON_LINES.encode()),
        ("table.jsonl.gz", gzip.compress(JSON_LINES.encode(), mtime=0)),
    ],
)
def test_text_columns_are_taken_as_they_stand_and_rows_are_numbered(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    table = scan_table(tmp_path / name, text_columns=["id", "absent"]).collect()
    assert table.to_dict(as_series=False) == {ROW: [1, 2], "id": ["007", "8"], "row": ["x", "y"], "n": [1, 2]}


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_text_may_be_compressed_by_zstandard(ending: str, tmp_path: Path) -> None:
    table, path = pl.DataFrame({"id": ["007", "8"], "n": [1, 2]}), tmp_path / f"table.{ending}.zst"
    if ending == "csv":
        table.lazy().sink_csv(path, compression="zstd")
    else:
        table.lazy().sink_ndjson(path, compression="zstd")
    found = scan_table(path, text_columns=["id"]).collect()
    assert found.to_dict(as_series=False) == {ROW: [1, 2], "id": ["007", "8"], "n": [1, 2]}


@pytest.mark.parametrize("separator", [";", "\t", "|"])
@pytest.mark.parametrize("ending", ["csv", "csv.gz", "csv.zst"])
def test_another_separator_is_recognised_by_the_header(separator: str, ending: str, tmp_path: Path) -> None:
    path, header = tmp_path / f"table.{ending}", separator.join(["id", "price", "n"])
    text = f"{header}\n{separator.join(['007', '3,50', '1'])}\n"
    if ending.endswith("zst"):
        pl.LazyFrame({"all": text.splitlines()}).sink_csv(
            path, compression="zstd", include_header=False, separator="\0", quote_style="never"
        )
    else:
        path.write_bytes(gzip.compress(text.encode()) if ending.endswith("gz") else text.encode())
    table = scan_table(path, text_columns=["id"]).collect()
    assert table.to_dict(as_series=False) == {ROW: [1], "id": ["007"], "price": ["3,50"], "n": [1]}


def test_a_repeated_column_is_found_in_a_compressed_file(tmp_path: Path) -> None:
    lines = pl.LazyFrame({"n": ["n", "1"], "m": ["n", "2"]})
    lines.sink_csv(tmp_path / "table.csv.zst", compression="zstd", include_header=False)
    with pytest.raises(InputError, match="column 'n' occurs twice"):
        scan_table(tmp_path / "table.csv.zst")


def test_a_column_that_only_later_lines_have_is_found(tmp_path: Path) -> None:
    (tmp_path / "table.jsonl").write_text('{"id": "a"}\n' * 2_000 + '{"id": "b", "n": 1}\n')
    assert scan_table(tmp_path / "table.jsonl").select("n").collect().to_series().to_list() == [None] * 2_000 + [1]


WRITERS: dict[str, Callable[[pl.DataFrame, Path], Any]] = {
    "csv": pl.DataFrame.write_csv,
    "tsv": pl.DataFrame.write_csv,
    "jsonl": pl.DataFrame.write_ndjson,
    "parquet": pl.DataFrame.write_parquet,
    "feather": pl.DataFrame.write_ipc,
}


@pytest.mark.parametrize("ending", WRITERS)
def test_a_name_is_no_pattern(ending: str, tmp_path: Path) -> None:
    folder = tmp_path / "o [x]?*"
    folder.mkdir()
    for name, value in {f"l ?[1]*.{ending}": 1, f"l x1.{ending}": 2}.items():
        WRITERS[ending](pl.DataFrame({"n": [value]}), folder / name)
    assert scan_table(folder / f"l ?[1]*.{ending}").collect()["n"].to_list() == [1]


def problem_of(path: Path) -> str:
    """What is said, in one line, of a table that cannot be read."""
    with pytest.raises(InputError) as raised, read_errors(path):
        scan_table(path, text_columns=["id"]).collect()
    (problem,) = raised.value.problems
    assert "\n" not in problem
    return problem.removeprefix(f"{path}: ")


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("t.csv", b"id,n\na,1\nb,2,3\n", "cannot be read: line 3: expected 2 values as in the header, found 3"),
        ("t.tsv", b"id\tn\na\t1\nb\t2\t3\n", "cannot be read: line 3: expected 2 values as in the header, found 3"),
        ("t.csv", b"id,n\na,1\n\"b\"x,2\n",
         "cannot be read: line 3: unbalanced quotes; close them, and double quotes within a value "
         "(',' expected after '\"')"),
        ("t.csv", b"id,n\na,1\n\"b,2\nc,3\n",
         "cannot be read: line 3: unbalanced quotes; close them, and double quotes within a value "
         "(unexpected end of data)"),
        ("t.csv", b"id,n\na,1\n\xe4,2\n", "cannot be read: line 3: expected text in UTF-8, found other bytes"),
        ("t.csv.gz", gzip.compress(b"id,n\na,1\nb,2,3\n", mtime=0),
         "cannot be read: line 3: expected 2 values as in the header, found 3"),
        ("t.csv", b"id,n\n" + b"a,1\n" * 200 + b"a,x\n",
         "cannot be read: could not parse `x` as dtype `i64` at column 'n' (column number 2)"),
        ("t.csv", b"\xe4,n\na,1\n", "line 1: expected text in UTF-8, found other bytes"),
        ("t.csv", CSV.encode("utf-16"), "expected text in UTF-8, found UTF-16; save it as UTF-8"),
        ("t.csv", CSV.encode("utf-16-le"), "expected text in UTF-8, found UTF-16; save it as UTF-8"),
        ("t.jsonl", JSON_LINES.encode("utf-16"), "expected text in UTF-8, found UTF-16; save it as UTF-8"),
        ("t.csv", b"", "expected a table, found an empty file"),
        ("t.jsonl", b"\n", "expected a table, found an empty file"),
        ("t.csv", b"\xef\xbb\xbfid,click,id\n1,0,1\n", "column 'id' occurs twice; keep one"),
        ("t.jsonl", b'\xef\xbb\xbf{"id": 1}\n',
         "expected a JSON object, found a byte order mark; save it as UTF-8 without one"),
        ("t.jsonl", b'{"id": 1}\n\n{"id": 1,}\n',
         "cannot be read: line 3: expected a JSON object in UTF-8, found '{\"id\": 1,}'"),
        ("t.jsonl", b'{"id": 1}\n[1]\n', "cannot be read: line 2: expected a JSON object in UTF-8, found '[1]'"),
        ("t.jsonl", b'{"n": NaN}\n', "cannot be read: line 1: expected a JSON object in UTF-8, found '{\"n\": NaN}'"),
    ],
)  # fmt: skip
def test_what_is_no_table_is_told_in_one_line(name: str, content: bytes, problem: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    assert problem_of(tmp_path / name) == problem


def test_a_damaged_gzip_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(CSV.encode(), mtime=0)[:-10])
    assert problem_of(tmp_path / "t.csv.gz").startswith("cannot be read: ")


def test_columns_without_a_name_may_be_many(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("n,,\n1,,\n")
    assert scan_table(tmp_path / "t.csv").select("n").collect()["n"].to_list() == [1]


def test_a_byte_order_mark_before_a_header_is_read_over(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(CSV, encoding="utf-8-sig")
    assert scan_table(tmp_path / "t.csv", text_columns=["id"]).collect()["id"].to_list() == ["007", "8"]


def test_what_cannot_be_written_is_told_in_one_line_with_the_file() -> None:
    with (
        pytest.raises(InputError, match=r"^r\.parquet: cannot be written: File too large$"),
        write_errors(Path("r.parquet")),
    ):
        raise pl.exceptions.ComputeError("File too large\nand more")
    with pytest.raises(FileNotFoundError), write_errors(Path("r.parquet")):
        Path("no such file").read_text()


def test_what_polars_did_not_expect_is_one_line() -> None:
    message = r"^a\.parquet: cannot be read: damaged, or not what its name says$"
    with pytest.raises(InputError, match=message), read_errors("a.parquet"):
        raise pl.exceptions.PanicException("called `Result::unwrap()` on an `Err` value")


def test_a_header_with_line_ends_of_another_system_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"query_id,doc_id\rq,a\rq,b\r")
    with pytest.raises(InputError, match="line 1: expected a header, found another form of text"):
        scan_table(tmp_path / "a.csv")


LINES = [
    {"a": 1, "b": None},
    {"a": 2.5},
    {"b": [1], "c": "x"},
    {"c": None, "d": True},
    {"a": 1, "b": [2.5]},
    {"c": "y"},
]


@pytest.mark.parametrize("name", ["t.jsonl", "t.jsonl.gz"])
def test_columns_found_block_by_block_are_those_of_the_whole_file(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "".join(json.dumps(line) + "\n" for line in LINES).encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    monkeypatch.setattr(line_blocks, "BLOCK_BYTES", 30)
    done: list[int] = []
    assert json_columns(path, done.append) == pl.scan_ndjson(path, infer_schema_length=None).collect_schema()
    assert sum(done) == path.stat().st_size
    assert len(done) > 2


ROWS = 300_000


def to_gzip(table: pl.DataFrame, path: Path) -> None:
    table.lazy().sink_csv(path, compression="gzip")


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("t.csv", pl.DataFrame.write_csv),
        ("t.csv.gz", to_gzip),
        ("t.parquet", pl.DataFrame.write_parquet),
        ("t.jsonl", pl.DataFrame.write_ndjson),
    ],
)
def test_rows_are_read_in_their_order_and_counted_while_they_are_read(
    name: str, write: Callable[[pl.DataFrame, Path], Any], tmp_path: Path
) -> None:
    table = pl.DataFrame({"id": np.arange(ROWS), "x": np.random.default_rng(0).random(ROWS)})
    write(table, tmp_path / name)
    stages: list[tuple[str, int | None]] = []
    done: list[int] = []

    def begin(name: str, total: int | None) -> Callable[[int], None]:
        stages.append((name, total))
        return done.append

    read = collect_rows(scan_table(tmp_path / name).select("id", "x"), tmp_path / name, begin)
    assert read.equals(table)
    assert stages == [(f"reading {name}", ROWS)]
    assert sum(done) == ROWS
    assert len(done) > 1


def test_the_rows_of_the_footer_are_counted(tmp_path: Path) -> None:
    pl.DataFrame({"a": range(7)}).write_parquet(tmp_path / "a.parquet")
    assert count_parquet_rows(tmp_path / "a.parquet") == 7


def test_far_more_rows_than_the_file_can_hold_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compressed_files, "FREE_ROWS", 1_000)
    file = tmp_path / "a.parquet"
    pl.select(a=pl.repeat(0, 3_000_000)).write_parquet(file, row_group_size=3_000_000, compression="zstd")
    assert file.stat().st_size < 3_000
    with pytest.raises(InputError, match=r"a\.parquet: refused, because it claims 3,000,000 rows in"):
        scan_table(file)


@pytest.fixture(scope="module")
def bomb() -> bytes:
    """A gigabyte of one letter in a megabyte."""
    part = gzip.compress(b"a" * (64 << 20), 9, mtime=0)
    return part * 16


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("data.txt.gz", read_letor),
        ("features.csv.gz", read_feature_table),
        ("features.ndjson.gz", read_feature_table),
        ("clicks.csv.gz", import_log_with_report),
        ("ubi.ndjson.gz", lambda file: import_log_with_report(file, format="ubi")),
    ],
)
def test_a_file_that_expands_a_thousandfold_is_refused_at_once(
    name: str, read: Callable[[Path], Any], bomb: bytes, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(bomb)
    start = time.process_time()
    tracemalloc.start()
    try:
        refusals = "is more than 300 times as large as the file; decompress it|one of more than 8,388,608 bytes"
        with pytest.raises(InputError, match=refusals):
            read(tmp_path / name)
        assert tracemalloc.get_traced_memory()[1] < 500 << 20
    finally:
        tracemalloc.stop()
    assert time.process_time() - start < 15  # 2, but for the tracing and slow machines


def test_text_that_compresses_well_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines of zeros and ones."""
    monkeypatch.setattr(compressed_files, "FREE_BYTES", 1 << 20)
    lines = b"".join(b"0 qid:1 1:0 2:0 3:0 4:%d\n" % bit for bit in np.random.default_rng(0).integers(0, 2, 100_000))
    (tmp_path / "a.gz").write_bytes(gzip.compress(lines, 9))
    with (tmp_path / "a.gz").open("rb") as raw:
        assert open_gzip(tmp_path / "a.gz", raw).read() == lines
    assert len(lines) > 2 << 20


FRAME = b"\x28\xb5\x2f\xfd\x00\x38"


def repeated(length: int, last: bool) -> bytes:
    """A block that repeats the letter a."""
    return (int(last) | 1 << 1 | length << 3).to_bytes(3, "little") + b"a"


@pytest.mark.parametrize("rows", [10, 300_000])
def test_the_size_of_what_polars_writes_is_known(rows: int, tmp_path: Path) -> None:
    file = tmp_path / "a.csv.zst"
    table = pl.select(query_id=pl.lit("q"), doc_id=pl.int_range(rows), x=pl.int_range(rows) % 7)
    table.write_csv(file, compression="zstd")
    text = table.write_csv().encode()
    with file.open("rb") as opened:
        known = sum(_block_sizes(opened))
    assert len(text) <= known < len(text) + (128 << 10)
    check_zstandard(file)
    assert read_feature_table(file).n_documents == rows


@pytest.mark.parametrize("name", ["a.csv.zst", "a.ndjson.zst"])
def test_a_file_that_expands_a_thousandfold_is_refused(name: str, tmp_path: Path) -> None:
    """A gigabyte in 32 kilobytes."""
    blocks = repeated(128 << 10, last=False) * 8_191 + repeated(128 << 10, last=True)
    (tmp_path / name).write_bytes(FRAME + blocks)
    with pytest.raises(InputError, match="more than 300 times as large as the file; decompress it with unzstd"):
        read_feature_table(tmp_path / name)


@pytest.mark.parametrize("content", [b"", FRAME[:3], FRAME[:5], FRAME, FRAME + b"a", b"text that is not compressed"])
def test_what_is_damaged_is_left_to_its_reader(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.csv.zst").write_bytes(content)
    check_zstandard(tmp_path / "a.csv.zst")


def test_frames_that_are_skipped_count_nothing(tmp_path: Path) -> None:
    skipped = (0x184D2A53).to_bytes(4, "little") + (5).to_bytes(4, "little") + b"12345"
    (tmp_path / "a").write_bytes(skipped + FRAME + repeated(7, last=True) + skipped)
    with (tmp_path / "a").open("rb") as opened:
        assert list(_block_sizes(opened)) == [7]


def test_a_line_without_an_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_blocks, "MAX_LINE_BYTES", 1_000)
    (tmp_path / "data.txt").write_bytes(b"1 qid:1 1:1\n2 qid:1 1:" + b"1" * 2_000)
    with pytest.raises(InputError, match=r"data\.txt:2: expected lines of text, found one of more than 1,000 bytes"):
        list(line_blocks.blocks_of_lines(tmp_path / "data.txt", 100, None))


@pytest.mark.thorough
@pytest.mark.parametrize("ending", ["csv", "ndjson", "parquet", "feather"])
def test_a_table_of_very_many_columns_is_refused_at_once(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"wide.{ending}"
    names = [f"c{i}" for i in range(10_001)]
    if ending == "csv":
        path.write_text(",".join(names) + "\n")
    elif ending == "ndjson":
        path.write_text(json.dumps(dict.fromkeys(names, 1)) + "\n")
    else:
        frame = pl.DataFrame({name: [1] for name in names})
        frame.write_parquet(path) if ending == "parquet" else frame.write_ipc(path)
    with pytest.raises(InputError, match=r"expected at most 10,000 columns, found 10,001$"):
        scan_table(path)


@pytest.mark.parametrize("name", ["t.jsonl.gz", "t.jsonl"])
def test_values_that_are_nested_too_deeply_are_refused(name: str, tmp_path: Path) -> None:
    deep = b'{"id": ' + b'{"a": ' * 500 + b"1" + b"}" * 500 + b"}\n"
    path = tmp_path / name
    path.write_bytes(gzip.compress(deep) if name.endswith(".gz") else deep)
    with pytest.raises(InputError, match=f"{name}: values are nested too deeply"):
        json_columns(path, no_progress)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.csv.zst", "a.ndjson.zst", "a.log"])
def test_a_bomb_is_refused_whatever_its_name(name: str, tmp_path: Path) -> None:
    """Polars goes by the first bytes, not by the name."""
    file = tmp_path / name
    file.write_bytes(gzip.compress(b"a\tb\n" + b"\n" * (65 << 20), 9, mtime=0))
    with pytest.raises(InputError, match=r"more than 300 times as large as the file|compressed by zstd, found other"):
        read_fields(file, ["a", "b"], lambda _: None) if name == "a.log" else scan_table(file)


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.csv.zst"])
def test_other_compression_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(zlib.compress(b"id,n\na,1\n", 1))
    with pytest.raises(InputError, match=r"compressed by zlib; decompress it|compressed by zstd, found other bytes"):
        scan_table(tmp_path / name)


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "csv.zst"])
def test_a_comma_in_quotes_does_not_separate_columns(ending: str, tmp_path: Path) -> None:
    path, text = tmp_path / f"t.{ending}", 'id;"price, EUR"\n007;"1,5"\n'
    if ending == "csv.zst":
        lines = pl.DataFrame({"line": text.splitlines()}).lazy()
        lines.sink_csv(path, compression="zstd", include_header=False, separator="\0", quote_style="never")
    else:
        path.write_bytes(gzip.compress(text.encode()) if ending == "csv.gz" else text.encode())
    assert scan_table(path).collect_schema().names() == [ROW, "id", "price, EUR"]


@pytest.mark.parametrize("name", ["a.parquet", "a.feather"])
@pytest.mark.parametrize("dtype", [pl.String, pl.Categorical, pl.List(pl.String), pl.Binary])
def test_a_text_that_is_stored_once_and_used_by_many_rows_is_counted_for_each(
    name: str, dtype: Any, tmp_path: Path
) -> None:
    file, is_list = tmp_path / name, dtype == pl.List(pl.String)
    column = pl.Series("a", ["x" * 100_000], dtype=pl.String)
    texts = (column.reshape((1, 1)) if is_list else column).cast(dtype).new_from_index(0, 700)
    if name == "a.parquet":
        texts.to_frame().write_parquet(file)
    else:
        texts.to_frame().write_ipc(file, compression="zstd")
    assert file.stat().st_size < 64_000
    with pytest.raises(InputError, match=r"70,000,000 bytes of (text|values)|damaged"):
        scan_table(file)


@pytest.mark.parametrize("name", ["t.jsonl", "t.jsonl.gz", "t.jsonl.zst"])
@pytest.mark.parametrize("inside", ["", "x"])
def test_lines_that_all_have_other_names_are_refused_after_some_of_them(name: str, inside: str, tmp_path: Path) -> None:
    """To find the columns of all lines at once takes the product of lines and names."""
    names = ({f"k{line}_{number}": 1 for number in range(100)} for line in range(400))
    lines = pl.DataFrame({"line": [json.dumps({inside: one} if inside else one) for one in names]})
    compression = {".gz": "gzip", ".zst": "zstd"}.get(Path(name).suffix, "uncompressed")
    lines.lazy().sink_csv(  # type: ignore[call-overload]
        tmp_path / name,
        include_header=False,
        quote_style="never",
        separator="\t",
        compression=compression,
    )
    with pytest.raises(InputError, match=r"expected at most 10,000 columns, found [12]\d,\d{3}$"):
        scan_table(tmp_path / name)


@pytest.mark.parametrize("value", ["1", "{}", "[{}]"])
def test_lines_with_ever_new_names_are_refused_also_of_empty_values(value: str, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text("".join(f'{{"x{number}":{value}}}\n' for number in range(12_000)))
    with pytest.raises(InputError, match=r"t\.jsonl: expected at most 10,000 columns, found 1"):
        json_columns(path, no_progress)


def test_blank_lines_of_a_whole_block_are_stepped_over(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"x":1}\n' + "\n" * 3 * line_blocks.BLOCK_BYTES + '{"y":"b"}\n')
    assert dict(json_columns(path, no_progress)) == {"x": pl.Int64, "y": pl.String}


def test_the_process_that_decodes_texts_imports_nothing_of_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "polars.py").write_text("import pathlib; pathlib.Path('imported').touch(); raise SystemExit(1)")
    pl.DataFrame({"id": ["a", "b"]}).write_parquet(tmp_path / "t.parquet")
    monkeypatch.chdir(tmp_path)
    check_prefixed_texts(tmp_path / "t.parquet")
    assert not (tmp_path / "imported").exists()


@pytest.mark.parametrize("name", ["t.csv", "t.ndjson", "t.parquet"])
def test_rows_with_nothing_in_them_are_refused_where_they_are_too_many(name: str, tmp_path: Path) -> None:
    path, width, rows = tmp_path / name, 1_000, 40_000
    names = [f"x{number}" for number in range(width)]
    if name.endswith("csv"):
        path.write_text(",".join(["id", *names]) + "\n" + "1\n" * rows)
    elif name.endswith("json"):
        path.write_text(json.dumps({"id": 1, **dict.fromkeys(names, 1)}) + "\n" + '{"id":1}\n' * rows)
    else:
        pl.DataFrame({name: pl.repeat(True, rows, eager=True) for name in ["id", *names]}).write_parquet(path)
    table = scan_table(path).drop(ROW)
    with pytest.raises(InputError, match=rf"{name}: refused, because 40,0\d\d rows of 1,001 columns are in"):
        collect_rows(table, path, no_stages)
    assert collect_rows(table.head(10), path, no_stages).shape == (10, width + 1)
