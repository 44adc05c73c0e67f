import gzip
import os
import string
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

from cuolr.data.letor import reader as letor
from cuolr.data.letor.fast_rows import parse_block, parse_dense, parse_sparse
from cuolr.data.letor.reader import (
    FREE_VALUES,
    LetorOptions,
    filled_up,
    read_file,
    read_letor,
    read_splits,
    write_letor,
)
from cuolr.data.letor.rows import RowLayout, parse_lines
from cuolr.errors import InputError, InputWarning
from cuolr.types import Candidates, RankingDataset

HINT = "if indices start at 0, use --zero-based (zero_based=True in Python)"


def write(folder: Path, text: str | bytes, name: str = "train.txt") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def problems_of(path: Path, options: LetorOptions = LetorOptions()) -> list[str]:
    with pytest.raises(InputError) as caught:
        read_letor(path, options)
    return [problem.removeprefix(str(path)) for problem in caught.value.problems]


# ---- what is read ----


def test_reads_grades_queries_features_and_document_ids(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "2 qid:10 1:0.5 2:-1e3 #docid = GX-1 inc = 1 prob = 0.5\n"
        "0 qid:10 1:0.25 2:7 #docid = GX-2\n"
        "1 qid:9 1:0 2:+.5 # GX-3\n",
    )
    dataset = read_letor(path)
    assert dataset.candidates.features.tolist() == [[0.5, -1000], [0.25, 7], [0, 0.5]]
    assert dataset.candidates.features.dtype == np.float32
    assert dataset.relevance.tolist() == [2, 0, 1]
    assert dataset.max_grade == 2
    assert dataset.candidates.offsets.tolist() == [0, 2, 3]
    assert dataset.candidates.query_ids.tolist() == ["10", "9"]
    assert dataset.candidates.document_ids is not None
    assert dataset.candidates.document_ids.tolist() == ["GX-1", "GX-2", "GX-3"]


def test_features_left_out_are_zero(tmp_path: Path) -> None:
    path = write(tmp_path, "1 qid:1 2:5\n0 qid:1\n0 qid:2 1:1 3:4\n")
    assert read_letor(path).candidates.features.tolist() == [[0, 5, 0], [0, 0, 0], [1, 0, 4]]
    assert not read_file(path).dense


def test_a_comment_of_several_words_is_no_document_id(tmp_path: Path) -> None:
    assert read_letor(write(tmp_path, "1 qid:1 1:5 # just some words\n")).candidates.document_ids is None


@pytest.mark.parametrize("end", ["\n", "\r\n", " \r\n", "  \n", "\t\n"])
def test_line_ends_and_blanks_do_not_matter(tmp_path: Path, end: str) -> None:
    path = write(tmp_path, f"# a header{end}{end}1  qid:1\t1:5 2:6{end} 0 qid:1 1:7 2:8{end}{end}# the end")
    assert read_letor(path).candidates.features.tolist() == [[5, 6], [7, 8]]


def test_the_last_line_may_lack_its_end(tmp_path: Path) -> None:
    assert read_letor(write(tmp_path, "1 qid:1 1:5\n0 qid:1 1:7")).candidates.features.tolist() == [[5], [7]]


def test_gzip_is_known_by_its_content_not_its_name(tmp_path: Path) -> None:
    path = write(tmp_path, gzip.compress(b"1 qid:1 1:5\n"))
    assert read_letor(path).candidates.features.tolist() == [[5]]


def test_zero_based_features_are_an_option(tmp_path: Path) -> None:
    path = write(tmp_path, "1 qid:1 0:5 1:6\n")
    assert read_letor(path, LetorOptions(zero_based=True)).candidates.features.tolist() == [[5, 6]]
    assert problems_of(path) == [f":1: expected a feature index from 1 to 1000000, found 0; {HINT}"]


@pytest.mark.parametrize("mark", ["NULL", "1.7976931348623157e+308", "-1.79769e308"])
@pytest.mark.parametrize(("missing", "value"), [("zero", 0), ("minimum", -2)])
def test_missing_values_become_zero_or_the_minimum(tmp_path: Path, mark: str, missing: str, value: float) -> None:
    for text in (f"1 qid:1 1:{mark} 2:1\n0 qid:1 1:-2 2:1\n0 qid:1 1:3 2:1\n", f"1 qid:1 1:{mark}\n0 qid:1 1:-2 2:1\n"):
        dataset = read_letor(write(tmp_path, text), LetorOptions(missing=missing))  # type: ignore[arg-type]
        assert dataset.candidates.features[:2, 0].tolist() == [value, -2]


def test_a_feature_that_is_always_missing_is_zero(tmp_path: Path) -> None:
    path = write(tmp_path, "1 qid:1 1:NULL\n")
    assert read_letor(path, LetorOptions(missing="minimum")).candidates.features.tolist() == [[0]]


def test_scattered_queries_are_grouped_in_order_with_a_warning(tmp_path: Path) -> None:
    path = write(tmp_path, "1 qid:b 1:1 # x\n0 qid:a 1:2 # y\n2 qid:b 1:3 # z\n")
    with pytest.warns(InputWarning, match="the rows of 1 of 2 queries are not consecutive; grouped, order kept"):
        dataset = read_letor(path)
    assert dataset.candidates.features.tolist() == [[1], [3], [2]]
    assert dataset.relevance.tolist() == [1, 2, 0]
    assert dataset.candidates.query_ids.tolist() == ["b", "a"]
    assert dataset.candidates.offsets.tolist() == [0, 2, 3]
    assert dataset.candidates.document_ids is not None
    assert dataset.candidates.document_ids.tolist() == ["x", "z", "y"]


@pytest.mark.parametrize("rows", ["1 1:5\n0 1:6\n1 1:7\n", "1 1:5 2:0\n0 2:6\n1\n"])
def test_a_group_file_stands_in_for_missing_qids(tmp_path: Path, rows: str) -> None:
    path = write(tmp_path, rows)
    write(tmp_path, "2\n1\n", "train.txt.query")
    dataset = read_letor(path)
    assert dataset.candidates.offsets.tolist() == [0, 2, 3]
    assert dataset.candidates.query_ids.tolist() == ["1", "2"]


def test_the_group_file_of_a_gzipped_file_may_be_named_without_gz(tmp_path: Path) -> None:
    path = write(tmp_path, gzip.compress(b"1 1:5\n0 1:6\n"), "train.txt.gz")
    write(tmp_path, "2\n", "train.txt.query")
    assert read_letor(path).candidates.offsets.tolist() == [0, 2]


def test_an_integral_grade_may_be_written_with_a_point(tmp_path: Path) -> None:
    assert read_letor(write(tmp_path, "2.0 qid:1 1:5\n")).relevance.tolist() == [2]


def test_many_blocks_read_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [f"{i % 3} qid:{i // 4} 1:{i} 2:{i / 7}" + (f" 3:{i}" if i % 5 else "") for i in range(100)]
    path = write(tmp_path, "\n".join(rows))
    whole = read_letor(path)
    monkeypatch.setattr(letor, "BLOCK_BYTES", 50)
    seen: list[int] = []
    parts = read_file(path, progress=seen.append)
    assert np.array_equal(parts.candidates.features, whole.candidates.features)
    assert np.array_equal(parts.candidates.offsets, whole.candidates.offsets)
    assert sum(seen) == path.stat().st_size


def test_values_are_those_of_scikit_learn_to_the_bit(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    numbers = rng.standard_normal((50, 8)) * 10.0 ** rng.integers(-30, 30, (50, 8))
    digits = ["0.1234567890123456789012", "123456789012345678901.5", "9007199254740993", "1e-46", "3.4028235e38"]
    texts = [[repr(value) for value in row] for row in numbers.tolist()] + [[*digits, "1", "2", "3"]]
    path = write(tmp_path, "".join(f"1 qid:1 {' '.join(f'{j}:{v}' for j, v in enumerate(row, 1))}\n" for row in texts))
    expected = load_svmlight_file(str(path), dtype=np.float32)[0].toarray()
    assert read_letor(path).candidates.features.tobytes() == expected.tobytes()


# ---- what is refused, and how ----


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("1 qid:1 1:abc", "expected a number as the value of feature 1, found 'abc'"),
        ("1 qid:1 1:", "expected a number as the value of feature 1, found ''"),
        ("1 qid:1 1:nan", "expected a number as the value of feature 1, found 'nan'"),
        ("1 qid:1 1:inf", "expected a number as the value of feature 1, found 'inf'"),
        ("1 qid:1 1:-Infinity", "expected a number as the value of feature 1, found '-Infinity'"),
        ("1 qid:1 1:1e39", "expected a value that fits 32 bits for feature 1, found '1e39'"),
        ("1 qid:1 1:1e999", "expected a value that fits 32 bits for feature 1, found '1e999'"),
        ("1 qid:1 1:1_0", "expected a number as the value of feature 1, found '1_0'"),
        ("1 qid:1 1:2:3", "expected a number as the value of feature 1, found '2:3'"),
        ("1 qid:1 x:2", "expected '<index>:<value>', found 'x:2'"),
        ("1 qid:1 +1:2", "expected '<index>:<value>', found '+1:2'"),
        ("1 qid:1 -0:2", "expected '<index>:<value>', found '-0:2'"),
        ("1 qid:1 7", "expected '<index>:<value>', found '7'"),
        ("1 qid:1 2:1 1:2", "expected feature indices in ascending order, found feature 1 after feature 2"),
        ("1 qid:1 1:1 1:2", "expected feature indices in ascending order, found feature 1 twice"),
        ("1 1:1", "expected 'qid:<id>' as field 2, found '1:1'"),
        ("1 qid: 1:1", "expected 'qid:<id>' as field 2, found 'qid:'"),
        ("1", "expected 'qid:<id>' as field 2, found the end of the line"),
        ("-1 qid:1 1:1", "expected a grade that is a whole number from 0 to 30, found '-1'"),
        ("1.5 qid:1 1:1", "expected a grade that is a whole number from 0 to 30, found '1.5'"),
        ("31 qid:1 1:1", "expected a grade that is a whole number from 0 to 30, found '31'"),
        ("good qid:1 1:1", "expected a grade (a whole number) as field 1, found 'good'"),
        ("nan qid:1 1:1", "expected a grade (a whole number) as field 1, found 'nan'"),
    ],
)
def test_a_bad_line_is_named_with_what_was_expected_and_found(tmp_path: Path, row: str, problem: str) -> None:
    assert problems_of(write(tmp_path, f"1 qid:1 1:3\n{row}\n0 qid:1 1:2\n")) == [f":2: {problem}"]


def test_a_feature_beyond_the_known_number_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "1 qid:1 1:1 2:1 3:1\n")
    assert problems_of(path, LetorOptions(n_features=2)) == [":1: expected a feature index from 1 to 2, found 3"]


@pytest.mark.parametrize("block_bytes", [200, 1 << 20])
def test_an_index_that_would_fill_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: int
) -> None:
    monkeypatch.setattr(letor, "BLOCK_BYTES", block_bytes)
    monkeypatch.setattr("cuolr.data.letor.rows.FREE_BYTES", 50_000)
    path = write(tmp_path, "0 qid:1 1:1\n" * 30 + "0 qid:1 900000:1\n" + "0 qid:1 1:1\n" * 30)
    assert problems_of(path) == [":31: feature index 900000 is too large for memory"]


def test_many_rows_of_a_wide_file_are_refused_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(letor, "BLOCK_BYTES", 100)
    monkeypatch.setattr("cuolr.data.letor.rows.FREE_BYTES", 50_000)
    path = write(tmp_path, "0 qid:1 1000:1\n" * 30)
    monkeypatch.setattr("cuolr.data.letor.rows.MAX_GROWTH", 0)
    assert problems_of(path) == [": too large for memory: 1000 features in 30 rows"]


def test_a_table_is_named_as_such_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("query_id,doc_id,grade\n" + "shoes,d4,2\n" * 30)
    with pytest.raises(InputError, match=r"labels\.csv: expected LETOR, rows .*, found a table$") as refused:
        read_letor(tmp_path / "labels.csv")
    assert len(refused.value.problems) == 1
    with pytest.raises(InputError, match=r"nowhere\.csv: file not found$"):
        read_letor(tmp_path / "nowhere.csv")


def test_the_first_twenty_problems_are_collected_over_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(letor, "BLOCK_BYTES", 64)
    path = write(tmp_path, "".join("1 qid:1 1:1\n" if i % 2 else "1 qid:1 1:x\n" for i in range(100)))
    assert [problem.split(": ")[0] for problem in problems_of(path)] == [f":{1 + 2 * i}" for i in range(20)]


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing but a comment\n"])
def test_a_file_without_rows_is_refused(tmp_path: Path, text: str) -> None:
    assert problems_of(write(tmp_path, text)) == [
        ": expected at least one row '<grade> qid:<id> <index>:<value> …', found none"
    ]


def test_a_truncated_gzip_is_refused_with_the_line_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    whole = "".join(f"1 qid:1 1:{value}\n" for value in rng.random(2_000))
    monkeypatch.setattr(letor, "BLOCK_BYTES", 4_096)
    (problem,) = problems_of(write(tmp_path, gzip.compress(whole.encode())[:-6_000]))
    readable = zlib.decompressobj(wbits=31).decompress(gzip.compress(whole.encode())[:-6_000])
    line = len(readable.splitlines())
    assert problem.startswith(f":{line}: damaged gzip data")


def test_problems_before_the_damage_are_told_too(tmp_path: Path) -> None:
    whole = "1 qid:1 1:x\n" + "".join(f"1 qid:1 1:{value}\n" for value in np.random.default_rng(0).random(2_000))
    bad_line, damage = problems_of(write(tmp_path, gzip.compress(whole.encode())[:-6_000]))
    assert bad_line.startswith(":1: expected a number")
    assert "damaged gzip data" in damage


def test_several_gzip_members_are_one_file(tmp_path: Path) -> None:
    path = write(tmp_path, gzip.compress(b"1 qid:1 1:5\n0 qi") + gzip.compress(b"d:1 1:6\n"))
    assert read_letor(path).candidates.features.tolist() == [[5], [6]]


def test_a_nul_character_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, b"1 qid:a 1:1\n1 qid:a\0 1:1\n")
    assert problems_of(path) == [":2: expected text, found a NUL character"]


def test_rows_without_any_feature_are_refused(tmp_path: Path) -> None:
    assert problems_of(write(tmp_path, "1 qid:1\n0 qid:1\n")) == [": expected 1 or more features in a row, found 0"]


def test_dense_rows_of_fewer_features_than_known_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "1 qid:1 1:5 2:6\n0 qid:1 1:5 2:6\n")
    assert problems_of(path, LetorOptions(n_features=3)) == [": expected 3 features in a row, found 2"]
    sparse = write(tmp_path, "1 qid:1 2:6\n")
    assert read_letor(sparse, LetorOptions(n_features=3)).candidates.features.tolist() == [[0, 6, 0]]


def test_a_bad_first_row_beside_a_group_file_is_still_named(tmp_path: Path) -> None:
    path = write(tmp_path, "1 qid:1 1:x\n0 qid:1 1:3\n")
    write(tmp_path, "2\n", "train.txt.query")
    assert problems_of(path) == [":1: expected a number as the value of feature 1, found 'x'"]


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    assert problems_of(tmp_path / "absent.txt") == [": file not found"]


def test_group_counts_must_add_up(tmp_path: Path) -> None:
    path = write(tmp_path, "1 1:5\n0 1:6\n")
    write(tmp_path, "1\n", "train.txt.query")
    assert problems_of(path)[0].startswith(".query: expected counts that add up to the 2 rows")
    write(tmp_path, "1\nx\n", "train.txt.query")
    assert problems_of(path) == [".query:2: expected the number of rows of a query, found 'x'"]


# ---- splits ----


def test_splits_share_the_scale_of_grades(tmp_path: Path) -> None:
    paths = {"train": write(tmp_path, "4 qid:1 1:1\n"), "test": write(tmp_path, "1 qid:1 1:1\n", "test.txt")}
    assert [split.max_grade for split in read_splits(paths).values()] == [4, 4]


def test_dense_splits_with_different_features_are_refused(tmp_path: Path) -> None:
    paths = {"train": write(tmp_path, "1 qid:1 1:1 2:1\n"), "test": write(tmp_path, "1 qid:1 1:1\n", "test.txt")}
    with pytest.raises(
        InputError, match=r"expected the same number of features in every split, found: .*train.txt has 2"
    ):
        read_splits(paths)


def test_a_sparse_split_without_the_last_features_is_widened(tmp_path: Path) -> None:
    paths = {"train": write(tmp_path, "1 qid:1 1:1 2:1 3:1\n"), "test": write(tmp_path, "1 qid:1 2:5\n", "test.txt")}
    assert read_splits(paths)["test"].candidates.features.tolist() == [[0, 5, 0]]


def test_a_sparse_split_with_more_features_than_a_dense_one_is_refused(tmp_path: Path) -> None:
    paths = {"train": write(tmp_path, "1 qid:1 1:1 2:1\n"), "test": write(tmp_path, "1 qid:1 3:5\n", "test.txt")}
    with pytest.raises(InputError, match="same number of features"):
        read_splits(paths)


# ---- writing ----

numbers = st.floats(width=32, allow_nan=False, allow_infinity=False)
words = st.text(string.ascii_letters + string.digits + "-_.", min_size=1, max_size=8)


@st.composite
def datasets(draw: st.DrawFn) -> RankingDataset:
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    n_features = draw(st.integers(1, 5))
    n = sum(sizes)
    features = np.array(draw(st.lists(numbers, min_size=n * n_features, max_size=n * n_features)), np.float32)
    query_ids = draw(st.lists(words, min_size=len(sizes), max_size=len(sizes), unique=True))
    document_ids = draw(st.none() | st.lists(words, min_size=n, max_size=n))
    relevance = np.array(draw(st.lists(st.integers(0, 4), min_size=n, max_size=n)), np.int8)
    candidates = Candidates(
        features.reshape(n, n_features),
        np.concatenate([[0], np.cumsum(sizes)]),
        np.array(query_ids),
        None if document_ids is None else np.array(document_ids),
    )
    return RankingDataset(candidates, relevance, 4)


def test_values_whose_sum_is_too_large_for_a_float_are_read(tmp_path: Path) -> None:
    path = tmp_path / "large.txt"
    path.write_text("0 qid:1 1:3e38\n1 qid:1 1:3e38\n")
    assert read_letor(path).candidates.features.tolist() == [[np.float32(3e38)]] * 2


@pytest.mark.thorough
@given(dataset=datasets(), name=st.sampled_from(["data.txt", "data.txt.gz"]))
def test_what_is_written_reads_back_the_same(
    tmp_path_factory: pytest.TempPathFactory, dataset: RankingDataset, name: str
) -> None:
    path = tmp_path_factory.mktemp("written") / name
    write_letor(dataset, path)
    again = read_letor(path, max_grade=4)
    assert again.candidates.features.tobytes() == dataset.candidates.features.tobytes()
    assert np.array_equal(again.relevance, dataset.relevance)
    assert np.array_equal(again.candidates.offsets, dataset.candidates.offsets)
    assert np.array_equal(again.candidates.query_ids, dataset.candidates.query_ids)
    if dataset.candidates.document_ids is None:
        assert again.candidates.document_ids is None
    else:
        assert np.array_equal(again.candidates.document_ids, dataset.candidates.document_ids)  # type: ignore[arg-type]
    assert path.read_bytes()[:2] == (b"\x1f\x8b" if name.endswith("gz") else path.read_bytes()[:2])


# ---- arbitrary files, and damaged ones ----


@dataclass(frozen=True)
class Row:
    grade: int
    query: str
    features: dict[int, str]
    comment: str | None


number_texts = st.one_of(
    st.integers(-(10**6), 10**6).map(str),
    st.floats(-1e30, 1e30).map(repr),
    st.sampled_from(["0", "-0.0", "5.", ".5", "+2", "1E5", "1e-3", "0.30000000000000004", "1234567890123456789012"]),
)


@st.composite
def files(draw: st.DrawFn) -> tuple[list[Row], bytes]:
    """Rows, and a text that says the same in one of the many ways that are allowed."""
    n_features = draw(st.integers(1, 4))
    dense = draw(st.booleans())
    commented = draw(st.booleans())
    rows = []
    for query in draw(st.lists(words, min_size=1, max_size=3, unique=True)):
        for _ in range(draw(st.integers(1, 3))):
            kept = [j for j in range(1, n_features + 1) if dense or draw(st.booleans())]
            comment = draw(words) if commented and draw(st.booleans()) else None
            rows.append(Row(draw(st.integers(0, 4)), query, {j: draw(number_texts) for j in kept}, comment))
    gap, end = draw(st.sampled_from([" ", "  ", "\t"])), draw(st.sampled_from(["\n", "\r\n", " \n", "\n\n"]))
    lines = []
    for row in rows:
        fields = [str(row.grade), f"qid:{row.query}", *(f"{j}:{value}" for j, value in row.features.items())]
        comment_text = "" if row.comment is None else f" #docid = {row.comment} rest"
        lines.append(gap.join(fields) + comment_text + end)
    return rows, "".join(lines).encode()


@pytest.mark.thorough
@given(file=files())
@settings(max_examples=200)
def test_arbitrary_files_read_right(tmp_path_factory: pytest.TempPathFactory, file: tuple[list[Row], bytes]) -> None:
    rows, text = file
    assume(any(row.features for row in rows))
    dataset = read_letor(write(tmp_path_factory.mktemp("arbitrary"), text))
    width = max((max(row.features, default=0) for row in rows), default=0)
    expected = [[float(row.features.get(j, "0")) for j in range(1, width + 1)] for row in rows]
    assert dataset.candidates.features.tobytes() == np.array(expected, np.float32).reshape(len(rows), width).tobytes()
    assert dataset.relevance.tolist() == [row.grade for row in rows]
    assert dataset.candidates.query_ids[dataset.candidates.query_of_document].tolist() == [row.query for row in rows]
    if any(row.comment for row in rows):
        assert dataset.candidates.document_ids is not None
        assert dataset.candidates.document_ids.tolist() == [row.comment or "" for row in rows]


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    text = bytearray(draw(files())[1])
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(text)))
        kind = draw(st.sampled_from(["replace", "insert", "delete", "truncate", "swap"]))
        piece = draw(
            st.sampled_from([b" ", b":", b"\n", b"#", b"\t", b"\r", b"-", b"+", b".", b"e", b"0", b"qid:", b"NULL"])
        )
        piece = draw(
            st.just(piece) | st.binary(min_size=1, max_size=2) | st.sampled_from([b"nan", b"inf", b'"', b"1:1 "])
        )
        if kind == "replace":
            text[place : place + len(piece)] = piece
        elif kind == "insert":
            text[place:place] = piece
        elif kind == "delete":
            del text[place : place + draw(st.integers(1, 3))]
        elif kind == "truncate":
            del text[place:]
        elif place + 2 <= len(text):
            text[place], text[place + 1] = text[place + 1], text[place]
    return bytes(text)


@pytest.mark.thorough
@given(text=damaged())
@settings(max_examples=500)
@pytest.mark.filterwarnings("ignore::cuolr.errors.InputWarning")
def test_damage_gives_an_error_that_names_a_line_or_the_values_of_the_definition(
    tmp_path_factory: pytest.TempPathFactory, text: bytes
) -> None:
    path = write(tmp_path_factory.mktemp("damaged"), text)
    block, bad_lines = parse_lines(text.removeprefix(b"\xef\xbb\xbf"), RowLayout())
    if bad_lines or not block.features.size:
        with pytest.raises(InputError) as caught:
            read_letor(path)
        named = [problem.removeprefix(f"{path}:").split(":")[0] for problem in caught.value.problems]
        if bad_lines:
            assert named == [str(number + 1) for number, _ in bad_lines][:20]
        return
    dataset = read_letor(path)
    order = np.argsort(np.unique(block.queries.to_numpy(), return_inverse=True)[1], kind="stable")
    ids = dataset.candidates.query_ids[dataset.candidates.query_of_document]
    again = np.argsort(np.unique(ids, return_inverse=True)[1], kind="stable")
    assert dataset.relevance[again].tolist() == block.grades[order].tolist()
    expected = np.nan_to_num(block.features[order], nan=0.0)
    assert dataset.candidates.features[again].tobytes() == expected.tobytes()


@pytest.mark.thorough
@given(text=damaged() | files().map(lambda file: file[1]))
@settings(max_examples=500)
def test_the_fast_parsers_agree_with_the_definition_or_decline(text: bytes) -> None:
    expected, bad_lines = parse_lines(text, RowLayout())
    found, problems = parse_block(text, RowLayout())
    assert problems == bad_lines
    assert found.features.tobytes() == expected.features.tobytes()
    assert found.grades.tolist() == expected.grades.tolist()
    assert found.queries.to_list() == expected.queries.to_list()
    assert found.dense == expected.dense
    comments = [] if expected.comments is None else expected.comments.to_list()
    assert comments == ([] if found.comments is None or not (found.comments != "").any() else found.comments.to_list())


def test_the_fast_parsers_take_what_they_are_made_for() -> None:
    dense, sparse = b"1 qid:1 1:2 2:3\n0 qid:1 1:4 2:5\n", b"1 qid:1 2:3\n0 qid:1\n"
    assert parse_dense(dense, None, RowLayout()) is not None
    assert parse_dense(sparse, None, RowLayout()) is None
    assert parse_sparse(sparse, None, RowLayout()) is not None
    assert parse_dense(b"1 1:2 2:3\n", None, RowLayout(has_query=False)) is not None
    assert parse_sparse(b"1 2:3\n1\n", None, RowLayout(has_query=False)) is not None


# ---- real files ----


def test_all_folds_of_mq2008_read_with_the_published_counts(shared_data: Path) -> None:
    for fold in range(1, 6):
        parts = [
            read_letor(shared_data / "MQ2008" / f"Fold{fold}" / f"{split}.txt") for split in ("train", "vali", "test")
        ]
        assert sum(part.candidates.n_queries for part in parts) == 784
        assert sum(part.candidates.n_documents for part in parts) == 15_211
        assert {part.candidates.n_features for part in parts} == {46}
        grades = sum(np.bincount(part.relevance, minlength=3) for part in parts)
        assert np.asarray(grades).tolist() == [12_279, 2_001, 931]
        best = [np.maximum.reduceat(part.relevance, part.candidates.offsets[:-1]) for part in parts]
        assert sum(int((values == 0).sum()) for values in best) == 220


def test_mq2008_first_and_last_records(shared_data: Path) -> None:
    train = read_letor(shared_data / "MQ2008" / "Fold1" / "train.txt")
    candidates = train.candidates
    assert candidates.document_ids is not None
    assert (candidates.query_ids[0], candidates.document_ids[0]) == ("10002", "GX008-86-4444840")
    assert candidates.features[0, [0, 10, 45]].tolist() == np.array([0.007477, 0.471076, 0.007042], np.float32).tolist()


def test_the_mslr_sample_reads_as_scikit_learn_reads_it(shared_data: Path) -> None:
    counts = {"train": (43, 5_000), "vali": (11, 1_063), "test": (43, 5_000)}
    for split, (queries, documents) in counts.items():
        path = shared_data / "mslr-web10k-sample" / "Fold1" / f"{split}.txt"
        dataset = read_letor(path)
        assert (dataset.candidates.n_queries, dataset.candidates.n_documents) == (queries, documents)
        features, grades = load_svmlight_file(str(path), dtype=np.float32)
        assert dataset.candidates.features.tobytes() == features.toarray().tobytes()
        assert dataset.relevance.tolist() == grades.tolist()


def test_a_pipe_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "train.txt")
    assert problems_of(tmp_path / "train.txt") == [": expected a file, found a folder or a device"]


def test_documents_are_not_filled_up_to_more_features_than_memory_holds(tmp_path: Path) -> None:
    """A model of a few kilobytes can claim a million features."""
    candidates = read_file(write(tmp_path, "1 qid:1 1:5\n" * 100)).candidates
    with pytest.raises(
        InputError, match=r"has 1 features, but the model has 167,774: too many to set to 0 for 100 doc"
    ):
        filled_up(candidates, FREE_VALUES // 100 + 2, tmp_path / "train.txt")
    with pytest.warns(InputWarning, match="the missing ones are set to 0"):
        assert filled_up(candidates, 1_000, tmp_path / "train.txt").n_features == 1_000
