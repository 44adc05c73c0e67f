"""Rankings and relevance judgements as files: Parquet, CSV, or the formats of `trec_eval`.

A document is named by its id or, without one, by its number within the query, from 1.
"""

from pathlib import Path

import numpy as np
import polars as pl

from cuolr.data.spreadsheet_text import printable_texts, without_formulas
from cuolr.data.tables import write_errors
from cuolr.errors import InputError
from cuolr.files import atomic_file
from cuolr.types import Candidates, Ints, RankingDataset

SUFFIXES = (".parquet", ".pq", ".csv", ".trec", ".run")


def write_rankings(path: Path, candidates: Candidates, ranking: Ints) -> None:
    """Write rankings, a row per document: query_id, position (from 1), doc_id. All or nothing.

    Args:
        path: The suffix gives the format, one of `SUFFIXES`: `.parquet`, `.csv`, or `.trec` or `.run` for a TREC run.
        candidates: The ranked documents.
        ranking: [n_queries, k] candidate indices, −1 after the last document.
    """
    suffix = path.suffix.lower()
    assert suffix in SUFFIXES, path
    if suffix in (".trec", ".run"):
        write_run(path, candidates, ranking)
        return
    table = ranked_documents(candidates, ranking)
    path.parent.mkdir(parents=True, exist_ok=True)
    with write_errors(path), atomic_file(path) as unfinished:
        if suffix == ".csv":
            without_formulas(table).write_csv(unfinished)
        else:
            table.write_parquet(unfinished)


def write_run(path: Path, candidates: Candidates, ranking: Ints) -> None:
    """Write rankings, a line per document: query, Q0, document, position, score, tag. All or nothing.

    `trec_eval` sorts by score, not by position, so the scores decrease by 1 from each position to the next.

    Args:
        path: The file to write; its folder is created.
        candidates: The ranked documents.
        ranking: [n_queries, k] candidate indices, −1 after the last document.
    """
    lines = ranked_documents(candidates, ranking).select(
        "query_id",
        pl.lit("Q0").alias("q0"),
        "doc_id",
        "position",
        (ranking.shape[1] + 1 - pl.col("position")).alias("score"),
        pl.lit("cuolr").alias("tag"),
    )
    _write(path, lines)


def write_qrels(path: Path, dataset: RankingDataset) -> None:
    """Write the grade of every document, a line each: query, 0, document, grade. All or nothing."""
    candidates = dataset.candidates
    names = {"query_id": candidates.query_ids[candidates.query_of_document], "doc_id": candidates.document_names}
    lines = pl.DataFrame(names | {"grade": np.asarray(dataset.relevance)})
    _write(path, lines.select("query_id", pl.lit(0).alias("iteration"), "doc_id", "grade"))


def ranked_documents(candidates: Candidates, ranking: Ints) -> pl.DataFrame:
    """A row per ranked document: query_id, position (from 1) and doc_id."""
    query, position = np.nonzero(ranking >= 0)
    rows = candidates.offsets[query] + ranking[query, position]
    return pl.DataFrame(
        {
            "query_id": candidates.query_ids[query],
            "position": (position + 1).astype(np.int32),
            "doc_id": candidates.document_names[rows],
        }
    )


def _write(path: Path, lines: pl.DataFrame) -> None:
    lines = printable_texts(lines)
    for name in ("query_id", "doc_id"):
        spaced = lines.filter(pl.col(name).str.contains(r"\s"))
        if len(spaced):
            raise InputError(f"{path}: ids in a TREC file cannot contain spaces, found {name} '{spaced[name][0]}'")
    twice = lines.filter(pl.struct("query_id", "doc_id").is_duplicated())
    if len(twice):
        query_id, document = twice.select("query_id", "doc_id").row(0)
        raise InputError(
            f"{path}: a TREC file lists each document of a query once, found '{document}' of '{query_id}' again"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    with write_errors(path), atomic_file(path) as unfinished:
        lines.write_csv(unfinished, separator=" ", include_header=False, quote_style="never")
