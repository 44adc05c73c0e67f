"""Relevance labels that come with a public click log, for evaluation only. Left of the wall: no learner reads them.

Files: Feather with a column `label` and the features of the log (Baidu-ULTR, UvA); text with the fields id, session,
query, document and grade (TianGong-ST); TREC qrels with query, iteration, document and grade; or a table with query_id,
doc_id and label.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from cuolr.data.arrow_structure import check_arrow
from cuolr.data.features import read_feature_table
from cuolr.data.tables import COMMAS, FEATHER, JSON_LINES, PARQUET, TABS, read_errors, scan_table
from cuolr.data.text_sizes import check_texts, text_array
from cuolr.errors import InputError
from cuolr.files import require_file
from cuolr.logs.importing.formats.baidu_ultr_uva import LABEL, RENAMED, feature_columns
from cuolr.types import Candidates, RankingDataset

# The fields of a line of text, by their number: the query, the document and the grade.
FIELDS = {4: (0, 2, 3), 5: (2, 3, 4)}
LOWEST_SCALE = 4


def read_labels(file: Path, candidates: Candidates) -> RankingDataset:
    """Read labels as queries to evaluate on.

    Args:
        file: See above.
        candidates: The documents of the log, with the features that rankers are trained on.
    """
    require_file(file)
    name = file.name.lower()
    if name.endswith(FEATHER):
        rows = _with_features(file, candidates)
    elif name.endswith(PARQUET + COMMAS + TABS + JSON_LINES):
        with read_errors(file):
            rows = scan_table(file, ("query_id", "doc_id")).collect()
        _check(file, rows.columns, ("query_id", "doc_id", LABEL))
        rows = rows.with_columns(pl.col("query_id", "doc_id").cast(pl.String))
    else:
        rows = _from_text(file)
    rows = rows.with_columns(pl.col(LABEL).cast(pl.Float64, strict=False))
    bad = rows.filter(pl.col(LABEL).is_null() | (pl.col(LABEL) < 0) | (pl.col(LABEL) != pl.col(LABEL).floor()))
    if len(bad):
        raise InputError(f"{file}: expected whole numbers from 0 up as labels, found {len(bad):,} others")
    rows = rows.unique(("query_id", "doc_id"), keep="first", maintain_order=True).sort("query_id", "doc_id")
    if name.endswith(FEATHER):
        labelled = read_feature_table(rows.drop(LABEL))  # which keeps sorted rows in their order
    else:
        rows, labelled = _found(file, rows, candidates)
    grades = rows[LABEL].to_numpy().astype(np.int8)
    return RankingDataset(labelled, grades, max(LOWEST_SCALE, int(grades.max())))


def _check(file: Path, found: list[str], needed: tuple[str, ...]) -> None:
    if missing := [name for name in needed if name not in found]:
        raise InputError(f"{file}: expected labels; columns missing: {', '.join(missing)}; found: {', '.join(found)}")


def _from_text(file: Path) -> pl.DataFrame:
    """Lines of four or five fields, separated by spaces or tabs."""
    found: list[tuple[str, str, str]] = []
    with file.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, start=1):
            fields = line.split()
            if fields and len(fields) not in FIELDS:
                raise InputError(
                    f"{file}:{number}: expected 'query 0 document grade' or 'id session query document grade', found "
                    f"{line.strip()[:60]!r}"
                )
            if fields:
                query, document, grade = FIELDS[len(fields)]
                found.append((fields[query], fields[document], fields[grade]))
    if not found:
        raise InputError(f"{file}: expected labels, found an empty file")
    return pl.DataFrame(found, schema={"query_id": pl.String, "doc_id": pl.String, LABEL: pl.String}, orient="row")


def _with_features(file: Path, candidates: Candidates) -> pl.DataFrame:
    """Labels with features of their own, which must be those of the log."""
    check_arrow(file)
    with read_errors(file):
        check_texts(file, pl.scan_ipc(file, glob=False))
        rows = pl.read_ipc(file).rename(RENAMED, strict=False)
    _check(file, rows.columns, ("query_no", "text_md5", LABEL))
    query = next((name for name in ("query_md5", "query_id") if name in rows.columns), "query_no")
    rows = rows.select(
        LABEL,
        *feature_columns(rows.schema),
        query_id=pl.col(query).cast(pl.String),
        doc_id=pl.col("text_md5").cast(pl.String),
    )
    names = [] if candidates.feature_names is None else candidates.feature_names.tolist()
    _check(file, rows.columns, tuple(names))
    return rows.select("query_id", "doc_id", LABEL, *names)


def _found(file: Path, rows: pl.DataFrame, candidates: Candidates) -> tuple[pl.DataFrame, Candidates]:
    """The labelled documents that the log has, in the order of `rows`, and they as candidates."""
    if candidates.document_ids is None:
        raise InputError(f"{file}: the documents of the log have no ids to find their labels by")
    documents = pl.DataFrame(
        {
            "query_id": candidates.query_ids[candidates.query_of_document],
            "doc_id": candidates.document_ids,
            "row": np.arange(candidates.n_documents),
        }
    )
    found = rows.join(documents, on=["query_id", "doc_id"], maintain_order="left")
    if not len(found):
        raise InputError(f"{file}: none of its {len(rows):,} labelled documents is in the log; are the ids the same?")
    sizes = found.group_by("query_id", maintain_order=True).len()
    row = found["row"].to_numpy()
    return found, replace(
        candidates,
        features=np.asarray(candidates.features[row]),
        offsets=np.concatenate([[0], np.cumsum(sizes["len"].to_numpy().astype(np.int64))]),
        query_ids=text_array(sizes["query_id"]),
        document_ids=candidates.document_ids[row],
    )
