"""A look-alike of a part of Baidu-ULTR, UvA version: Feather, a row per document, float16 embeddings."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from cuolr.errors import InputError
from cuolr.logs.importing.formats.baidu_ultr_uva import CLASSICAL, DIMENSIONS, EMBEDDING
from cuolr.logs.importing.import_log import import_log_with_report


def write_part(path: Path, lists: int = 6, documents: int = 5, embedding: bool = True, label: bool = False) -> Path:
    """Lists of two queries; the features of a document depend on the query and the document alone."""
    rows: dict[str, list[object]] = {name: [] for name in ("query_no", "query_id", "query_md5", "text_md5", "url_md5")}
    values: dict[str, list[object]] = {name: [] for name in (*CLASSICAL, EMBEDDING, "position", "click", "label")}
    for number in range(lists):
        for place in range(documents):
            query, document = number % 2, (number + place) % 8
            rng = np.random.default_rng([query, document])
            for name, value in zip(
                rows, (number, f"id{number // 4}", f"q{query}", f"t{document}", f"u{document}"), strict=True
            ):
                rows[name].append(value)
            for name in CLASSICAL:
                values[name].append(float(rng.random()))
            values[EMBEDDING].append(rng.standard_normal(DIMENSIONS).tolist())
            values["position"].append(place + 1)
            values["click"].append(int(place == number % documents))
            values["label"].append(document % 5)
    unused = ({EMBEDDING} if not embedding else set()) | ({"click", "position"} if label else {"label"})
    columns = {name: value for name, value in {**rows, **values}.items() if name not in unused}
    schema = {EMBEDDING: pl.List(pl.Float16)} if embedding else {}
    pl.DataFrame(columns, schema_overrides=schema).write_ipc(path)
    return path


def test_lists_go_by_query_no_and_queries_by_their_hash(tmp_path: Path) -> None:
    parts = [write_part(tmp_path / f"part-0_split-{i}.feather") for i in (0, 1)]
    log, report = import_log_with_report(parts, format="baidu-ultr-uva")
    assert (log.sessions, log.k, log.candidates.n_queries) == (12, 5, 2)
    assert log.candidates.query_ids.tolist() == ["q0", "q1"]
    assert (report.kept.clicks, report.repaired, report.dropped) == (12, (), ())


def test_features_are_the_classical_ones_and_the_embedding(tmp_path: Path) -> None:
    log, _ = import_log_with_report(write_part(tmp_path / "part-0_split-0.feather"), format="baidu-ultr-uva")
    assert log.candidates.n_features == len(CLASSICAL) + DIMENSIONS
    assert log.candidates.document_ids is not None
    assert log.candidates.document_ids[0] == "t0"
    rng = np.random.default_rng([0, 0])
    assert log.candidates.features[0, :12] == pytest.approx([rng.random() for _ in CLASSICAL])
    assert log.candidates.features[0, 12:] == pytest.approx(rng.standard_normal(DIMENSIONS), abs=2e-3)  # float16


def test_a_part_without_embeddings_has_the_classical_features(tmp_path: Path) -> None:
    part = write_part(tmp_path / "part-0_split-0.feather", embedding=False)
    log, _ = import_log_with_report(part, format="baidu-ultr-uva")
    assert log.candidates.feature_names is not None
    assert log.candidates.feature_names.tolist() == list(CLASSICAL)


def test_expert_labels_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expert labels, which a log must not have"):
        import_log_with_report(write_part(tmp_path / "validation.feather", label=True), format="baidu-ultr-uva")
