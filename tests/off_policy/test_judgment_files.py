import json
from pathlib import Path

import polars as pl
import pytest

from cuolr.errors import InputError
from cuolr.off_policy.judgment_files import format_of, topics_file, write_judgments

TABLE = pl.DataFrame(
    {
        "query_id": ["red shoes", "red shoes", 'say "hi", ok'],
        "doc_id": ["a", "b", "c"],
        "rate": [0.5, 0.1, 0.2],
        "rating": [3.0, 0.0, 1.0],
    }
)


def test_the_workbench_gets_the_request_that_imports_judgments(tmp_path: Path) -> None:
    write_judgments(tmp_path / "new" / "week 1.json", TABLE, "workbench")
    assert json.loads((tmp_path / "new" / "week 1.json").read_text()) == {
        "name": "week 1",
        "type": "IMPORT_JUDGMENT",
        "judgmentRatings": [
            {"query": "red shoes", "ratings": [{"docId": "a", "rating": 3.0}, {"docId": "b", "rating": 0.0}]},
            {"query": 'say "hi", ok', "ratings": [{"docId": "c", "rating": 1.0}]},
        ],
    }


def test_quepid_gets_query_docid_and_rating(tmp_path: Path) -> None:
    path = tmp_path / "quepid.csv"
    write_judgments(path, TABLE, "quepid")
    assert path.read_text() == 'query,docid,rating\nred shoes,a,3\nred shoes,b,0\n"say ""hi"", ok",c,1\n'
    write_judgments(path, TABLE.with_columns(rating=pl.col("rate")), "quepid")
    assert path.read_text().splitlines()[1] == "red shoes,a,0.5"


def test_qrels_of_queries_with_spaces_number_them(tmp_path: Path) -> None:
    path = tmp_path / "j.qrels"
    write_judgments(path, TABLE, "qrels")
    assert path.read_text() == "1 0 a 3\n1 0 b 0\n2 0 c 1\n"
    assert topics_file(path).read_text() == '1\tred shoes\n2\tsay "hi", ok\n'


def test_qrels_of_plain_queries_name_them(tmp_path: Path) -> None:
    path = tmp_path / "j.qrels"
    write_judgments(path, TABLE.with_columns(query_id=pl.lit("shoes")), "qrels")
    assert path.read_text() == "shoes 0 a 3\nshoes 0 b 0\nshoes 0 c 1\n"
    assert not topics_file(path).exists()


def test_what_qrels_cannot_hold_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="qrels hold whole numbers; choose a scale of grades"):
        write_judgments(tmp_path / "j.qrels", TABLE.with_columns(rating=pl.col("rate")), "qrels")
    with pytest.raises(InputError, match="cannot hold spaces, found doc_id 'a b'"):
        write_judgments(tmp_path / "j.qrels", TABLE.with_columns(doc_id=pl.lit("a b")), "qrels")
    assert list(tmp_path.iterdir()) == []


def test_a_table_has_all_columns(tmp_path: Path) -> None:
    write_judgments(tmp_path / "j.parquet", TABLE, "table")
    write_judgments(tmp_path / "j.csv", TABLE, "table")
    assert pl.read_parquet(tmp_path / "j.parquet").equals(TABLE)
    assert pl.read_csv(tmp_path / "j.csv").equals(TABLE)


def test_the_name_of_a_file_says_its_format() -> None:
    names = ("a.parquet", "a.CSV", "a.json", "a.qrels", "a.trec")
    assert [format_of(Path(name)) for name in names] == ["table", "table", "workbench", "qrels", "qrels"]
    with pytest.raises(InputError, match=r"expected a name that ends in \.parquet"):
        format_of(Path("a.txt"))
