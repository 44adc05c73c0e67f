"""`clax`: the Parquet copies of Yandex and Baidu logs for the click model library CLAX, a row per session."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import scipy

from cuolr.data.compressed_files import count_parquet_rows
from cuolr.data.tables import read_errors
from cuolr.files import require_file
from cuolr.logs.importing.importer import IMPORTERS, LogImporter, SourceLog
from cuolr.logs.importing.source_tables import (
    check_columns,
    features_of,
    in_turn,
    list_numbers,
    read_rows,
    share_of_bytes,
)
from cuolr.progress import Progress, Share, no_progress, share_of

LISTS = ("query_doc_ids", "clicks")
OPTIONAL_LISTS = ("positions", "mask", "query_doc_features")

# The share of the time to read rows, roughly; the rest is to find queries and features.
READING = 0.5


@IMPORTERS.register("clax")
class ClaxImporter(LogImporter):
    """An id stands for a document of one query. Without a query_id, documents that share a list are of one query."""

    def read(self, files: Sequence[Path], progress: Progress = no_progress) -> SourceLog:
        """Read one or more Parquet files."""
        done = share_of_bytes(files, progress)
        read = [_rows(file, number, advance) for number, file, advance in in_turn(files, share_of(done, READING))]
        rows = pl.concat(read, how="diagonal")
        notes = []
        if "query_id" not in rows.columns or rows["query_id"].null_count():
            rows = rows.with_columns(query_id=_queries(rows))
            notes.append("assumed: documents that are shown in one list, or connected by lists, are of one query")
        table = rows.select("session_id", "query_id", "doc_id", "position", "click")
        candidates = None
        if "features" in rows.columns:
            candidates = features_of(rows, ["features"])
        done(1 - READING)
        return SourceLog(table, candidates, tuple(notes))


def _rows(file: Path, number: int, progress: Share) -> pl.DataFrame:
    """A row per shown document."""
    require_file(file)
    with read_errors(file):
        count_parquet_rows(file)
    lists = read_rows(file, pl.scan_parquet(file, glob=False), progress)
    check_columns(file, lists.columns, LISTS, "Parquet with a row per session, as CLAX reads it")
    known = [name for name in OPTIONAL_LISTS if name in lists.columns]
    kept = lists.select(
        *LISTS,
        *known,
        *(["query_id"] if "query_id" in lists.columns else []),
        session_id=list_numbers(number),
        in_order=pl.int_ranges(1, pl.col("query_doc_ids").list.len() + 1),
    )
    with read_errors(file):
        rows = kept.explode(*LISTS, *known, "in_order")
    if "mask" in known:  # padding
        rows = rows.filter(pl.col("mask").cast(pl.Boolean))
    position = "positions" if "positions" in known else "in_order"
    return rows.select(
        "session_id",
        *([pl.col("query_id").cast(pl.String)] if "query_id" in rows.columns else []),
        *([pl.col("query_doc_features").alias("features")] if "query_doc_features" in known else []),
        doc_id=pl.col("query_doc_ids").cast(pl.String),
        position=pl.col(position).cast(pl.Int64),
        click=pl.col("clicks").cast(pl.Float64),
    )


def _queries(rows: pl.DataFrame) -> pl.Series:
    """A query for each row: a connected component of sessions and documents."""
    session = rows["session_id"].rank("dense").cast(pl.Int64).to_numpy() - 1
    document = rows["doc_id"].fill_null("").rank("dense").cast(pl.Int64).to_numpy() - 1
    n_sessions = int(session.max(initial=-1)) + 1
    size = n_sessions + int(document.max(initial=-1)) + 1
    edges = scipy.sparse.coo_array((np.ones(len(rows), np.bool_), (session, n_sessions + document)), shape=(size, size))
    _, component = scipy.sparse.csgraph.connected_components(edges, directed=False)
    return pl.Series(component[session]).cast(pl.String)
