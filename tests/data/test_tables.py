import gzip
from pathlib import Path

import pytest

from cuolr.data.tables import ROW, scan_table

CSV = "id,row,n\n007,x,1\n8,y,2\n"
JSON_LINES = '{"id": "007", "row": "x", "n": 1}\n{"id": 8, "row": "y", "n": 2}\n'


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("table.csv", CSV.encode()),
        ("TABLE.CSV", CSV.encode()),
        ("table.csv.gz", gzip.compress(CSV.encode())),
        ("table.tsv", CSV.replace(",", "\t").encode()),
        ("table.jsonl", JSON_LINES.encode()),
        ("table.ndjson", JSON_LINES.encode()),
    ],
)
def test_text_columns_are_taken_as_they_stand_and_rows_are_numbered(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    table = scan_table(tmp_path / name, text_columns=["id", "absent"]).collect()
    assert table.to_dict(as_series=False) == {ROW: [1, 2], "id": ["007", "8"], "row": ["x", "y"], "n": [1, 2]}


def test_a_column_that_only_later_lines_have_is_found(tmp_path: Path) -> None:
    (tmp_path / "table.jsonl").write_text('{"id": "a"}\n' * 2_000 + '{"id": "b", "n": 1}\n')
    assert scan_table(tmp_path / "table.jsonl").select("n").collect().to_series().to_list() == [None] * 2_000 + [1]
