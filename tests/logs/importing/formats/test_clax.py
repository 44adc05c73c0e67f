"""A look-alike of the Parquet copies for CLAX: a row per session with lists of ids and clicks."""

from pathlib import Path

import polars as pl
import pytest

from cuolr.errors import InputError
from cuolr.logs.importing.import_log import import_log_with_report

SESSIONS = pl.DataFrame(
    {"query_id": [7, 8, 7], "query_doc_ids": [[11, 12], [21, 22, 23], [12, 13]], "clicks": [[0, 1], [1, 0, 0], [0, 0]]}
)


def test_a_row_becomes_a_list(tmp_path: Path) -> None:
    SESSIONS.write_parquet(tmp_path / "train.parquet")
    log, report = import_log_with_report(tmp_path / "train.parquet", format="clax")
    assert log.candidates.query_ids.tolist() == ["7", "8"]
    assert log.query.tolist() == [0, 1, 0]
    assert log.ranking.tolist() == [[0, 1, -1], [0, 1, 2], [1, 2, -1]]
    assert log.clicks.tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
    assert (report.repaired, report.dropped) == ((), ())


def test_without_query_ids_documents_that_share_lists_are_of_one_query(tmp_path: Path) -> None:
    SESSIONS.drop("query_id").write_parquet(tmp_path / "train.parquet")
    log, report = import_log_with_report(tmp_path / "train.parquet", format="clax")
    assert log.candidates.n_queries == 2
    assert log.query[0] == log.query[2] != log.query[1]
    assert report.notes[0].startswith("assumed: documents that are shown in one list")


def test_padding_positions_and_features_are_taken(tmp_path: Path) -> None:
    pl.DataFrame(
        {
            "query_id": [1, 1],
            "query_doc_ids": [[5, 6, 0], [6, 5, 9]],
            "clicks": [[1, 0, 0], [0, 0, 1]],
            "mask": [[True, True, False], [True, True, True]],
            "positions": [[1, 3, 0], [1, 2, 4]],
            "query_doc_features": [[[0.1, 1.0], [0.2, 2.0], [0.0, 0.0]], [[0.2, 2.0], [0.1, 1.0], [0.3, 3.0]]],
        }
    ).write_parquet(tmp_path / "uva.parquet")
    log, report = import_log_with_report(tmp_path / "uva.parquet", format="clax")
    assert log.page_position is not None
    assert log.page_position.tolist() == [[0, 2, -1], [0, 1, 3]]
    assert log.candidates.features.ravel() == pytest.approx([0.1, 1.0, 0.2, 2.0, 0.3, 3.0])
    assert report.kept.impressions == 5


def test_another_table_is_refused(tmp_path: Path) -> None:
    SESSIONS.rename({"query_doc_ids": "docs"}).write_parquet(tmp_path / "train.parquet")
    with pytest.raises(InputError, match="columns missing: query_doc_ids; found: query_id, docs, clicks"):
        import_log_with_report(tmp_path / "train.parquet", format="clax")
