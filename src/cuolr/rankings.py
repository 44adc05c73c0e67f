"""Rankings as files: Parquet, CSV, or a run as `trec_eval` reads it."""

from pathlib import Path

import numpy as np
import polars as pl

from cuolr.errors import InputError
from cuolr.files import atomic_file
from cuolr.types import Candidates, Ints

SUFFIXES = (".parquet", ".pq", ".csv", ".trec", ".run")


def check_suffix(path: Path) -> None:
    """Refuse a name that does not say what the file is to be."""
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"{path}: expected a name that ends in {', '.join(SUFFIXES)}, found '{path.suffix}'")


def write_rankings(path: Path, candidates: Candidates, ranking: Ints) -> None:
    """Write rankings, a row per document: query_id, position (from 1), doc_id. All or nothing.

    Where the candidates have no document ids, a document is named by its number within the query, from 1.

    Args:
        path: Its name says what it is: `.parquet`, `.csv`, or `.trec` or `.run` for a TREC run.
        candidates: What was ranked.
        ranking: [n_queries, k] slots, −1 after the last document.
    """
    check_suffix(path)
    table = _as_table(candidates, ranking)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as unfinished:
        if path.suffix.lower() in (".parquet", ".pq"):
            table.write_parquet(unfinished)
        elif path.suffix.lower() == ".csv":
            table.write_csv(unfinished)
        else:
            _as_run(table, ranking.shape[1]).write_csv(
                unfinished, separator=" ", include_header=False, quote_style="never"
            )


def _as_table(candidates: Candidates, ranking: Ints) -> pl.DataFrame:
    query, position = np.nonzero(ranking >= 0)
    slot = ranking[query, position]
    named = pl.Series((slot + 1).astype(np.str_))
    if candidates.document_ids is not None:
        ids = pl.Series(candidates.document_ids[candidates.offsets[query] + slot])
        named = ids.zip_with(ids != "", named)
    return pl.DataFrame(
        {"query_id": candidates.query_ids[query], "position": (position + 1).astype(np.int32), "doc_id": named}
    )


def _as_run(table: pl.DataFrame, k: int) -> pl.DataFrame:
    """The columns of a TREC run; its scores only say the order."""
    for name in ("query_id", "doc_id"):
        spaced = table.filter(pl.col(name).str.contains(r"\s"))
        if len(spaced):
            raise InputError(f"a TREC run cannot hold spaces, found {name} '{spaced[name][0]}'; write .csv or .parquet")
    return table.select(
        "query_id",
        pl.lit("Q0").alias("q0"),
        "doc_id",
        "position",
        (k + 1 - pl.col("position")).alias("score"),
        pl.lit("cuolr").alias("tag"),
    )
