import gzip
import json
from pathlib import Path

from tests.cli.conftest import Run


def test_a_folder_shows_a_row_per_split(run: Run, tiny: Path) -> None:
    result = run("inspect", tiny)
    assert result.status == 0
    assert [line.split()[0] for line in result.out.splitlines() if "–" in line and "%" in line] == [
        "train",
        "vali",
        "test",
    ]


def test_json_has_the_counts(run: Run, shared_data: Path) -> None:
    result = run("inspect", shared_data / "MQ2008", "--fold", 3, "--json")
    counts = json.loads(result.out)
    assert {split: counts[split]["queries"] for split in counts} == {"train": 470, "vali": 157, "test": 157}
    assert sum(counts[split]["documents"] for split in counts) == 15_211
    assert sum(counts[split]["queries_without_relevant"] for split in counts) == 220
    assert [sum(grades) for grades in zip(*(counts[split]["grades"] for split in counts), strict=True)] == [
        12_279,
        2_001,
        931,
    ]
    assert result.err == ""


def test_one_file_will_do(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "some.txt.gz"
    path.write_bytes(gzip.compress(b"1 qid:1 1:0.5\n0 qid:2 1:0.25\n0 qid:2 1:1\n"))
    counts = json.loads(run("inspect", path, "--json").out)["some.txt.gz"]
    assert counts == {
        "queries": 2,
        "documents": 3,
        "features": 1,
        "grades": [2, 1],
        "documents_per_query": [1, 1.5, 2],
        "queries_without_relevant": 1,
    }


def test_bad_lines_are_told_one_by_one_without_a_traceback(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "bad.txt"
    path.write_text("1 qid:1 1:x\n1 1:1\n")
    result = run("inspect", path)
    assert result.status == 2
    assert result.out == ""
    assert result.err.splitlines() == [
        f"error: {path}:1: expected a number as the value of feature 1, found 'x'",
        f"error: {path}:2: expected 'qid:<id>' as field 2, found '1:1'",
    ]


def test_scattered_queries_are_told_and_read_all_the_same(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "scattered.txt"
    path.write_text("1 qid:1 1:1\n1 qid:2 1:1\n1 qid:1 1:1\n")
    result = run("inspect", path)
    assert result.status == 0
    assert result.err.startswith(f"warning: {path}: the rows of 1 of 2 queries are not consecutive")


def test_an_incomplete_data_set_gets_a_note(run: Run, shared_data: Path) -> None:
    result = run("inspect", shared_data / "mslr-web10k-sample", "--dataset", "mslr-web10k")
    assert result.status == 0
    assert "expected 10,000 queries and 1,200,192 documents in MSLR-WEB10K, found 97 and 11,063" in result.err


def test_the_table_of_the_paper_has_a_row_for_each_data_set(run: Run, shared_data: Path, tiny: Path) -> None:
    rows = json.loads(run("inspect", shared_data / "MQ2008", tiny, "--table", "--json").out)
    assert rows[str(shared_data / "MQ2008")] == {
        "name": "LETOR 4.0 MQ2008",
        "queries": 784,
        "features": 46,
        "documents": 15_211,
        "relevance_levels": 3,
        "folds": 5,
    }
    shown = run("inspect", shared_data / "MQ2008", "--table")
    assert "15,211" in shown.out
    assert "relevance levels" in shown.out
