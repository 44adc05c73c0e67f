"""What every registered format does with files that are not its own."""

import gzip
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from cuolr.errors import InputError
from cuolr.logs.importing.import_log import import_log_with_report
from cuolr.logs.importing.importer import IMPORTERS

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
