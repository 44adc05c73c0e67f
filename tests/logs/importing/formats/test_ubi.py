import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import cuolr
from cuolr.errors import InputError
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.importing.import_log import import_log_with_report
from cuolr.logs.importing.import_options import ImportOptions
from cuolr.logs.importing.ubi_report import UbiReport

RECORDS: list[dict[str, Any]] = [
    {"query_id": "L1", "user_query": "red shoes"},
    *(
        {
            "action_name": action,
            "query_id": "L1",
            "event_attributes": {"object": {"object_id": document}, "position": {"ordinal": ordinal}},
        }
        for action, document, ordinal in (("impression", "b", 1), ("impression", "a", 2), ("click", "a", 2))
    ),
]


def import_ubi(
    files: Any, features: Any = None, options: ImportOptions = ImportOptions(strict=True)
) -> tuple[ClickLog, UbiReport]:
    """The log and what was found in its records; nothing is left to repair in the table that they become."""
    log, report = import_log_with_report(files, features, options, format="ubi")
    assert isinstance(report.source, UbiReport)
    return log, report.source


@pytest.fixture
def ubi(tmp_path: Path) -> Path:
    """One list of two documents."""
    path = tmp_path / "ubi.ndjson"
    path.write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
    return path


def test_without_features_the_candidates_are_the_documents_shown(ubi: Path) -> None:
    log, report = import_ubi(ubi)
    assert (log.ranking.tolist(), log.clicks.tolist()) == ([[1, 0]], [[0, 1]])
    assert log.candidates.features.tolist() == [[0.0], [0.0]]
    assert report.complete == 1
    assert import_log_with_report(ubi, format="ubi")[1].source_notes[-1].startswith("the log has no features")


def test_features_name_a_query_by_its_text(ubi: Path) -> None:
    features = pl.DataFrame({"query_id": ["red shoes"] * 3, "doc_id": ["c", "b", "a"], "price": [1.0, 2.0, 3.0]})
    log, _ = import_ubi([str(ubi)], features)
    assert log.ranking.tolist() == [[1, 2]]
    assert log.candidates.features.tolist() == [[1.0], [2.0], [3.0]]
    with pytest.raises(InputError, match="'a' is not among the documents of query 'red shoes' in the features"):
        import_ubi(ubi, features.filter(pl.col("doc_id") != "a"), ImportOptions(strict=True))


def test_records_without_a_usable_list_are_refused_with_the_reasons(ubi: Path) -> None:
    ubi.write_text(json.dumps(RECORDS[0]))
    message = r"found 1 lists, none of them usable \(no impressions: 1\), in 1 queries and 0 events"
    with pytest.raises(InputError, match=message):
        import_ubi(ubi)


def test_a_real_sample_can_be_judged(shared_data: Path) -> None:
    log, _ = import_ubi(shared_data / "ubi" / "ubi_queries_events.ndjson")
    assert (log.sessions, log.candidates.n_queries, log.candidates.n_documents, log.k) == (200, 119, 595, 5)
    table = cuolr.judgments(log, min_examinations=1)
    assert table["rate"].is_finite().all()
    assert ((table["low"] <= table["rate"]) & (table["rate"] <= table["high"])).all()


def test_documents_and_queries_have_features_of_their_own(ubi: Path) -> None:
    documents = pl.DataFrame({"doc_id": ["c", "b", "a"], "colour": ["red", "blue", None]})
    queries = pl.DataFrame({"query_id": ["red shoes"], "words": [2]})
    log, _ = import_ubi(ubi, cuolr.FeatureTables(document=documents, query=queries))
    assert log.candidates.document_names.tolist() == ["a", "b"]
    assert log.candidates.feature_names is not None
    assert log.candidates.feature_names.tolist() == ["colour=blue", "colour is missing", "words"]
    assert log.candidates.features.tolist() == [[0, 1, 2], [1, 0, 2]]
