"""`baidu-ultr-uva`: clicks of Baidu web search with BERT and classical features, parts/part-*_split-*.feather."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from cuolr.data.arrow_structure import check_arrow
from cuolr.data.tables import read_errors
from cuolr.data.text_sizes import check_texts
from cuolr.errors import InputError
from cuolr.files import require_file
from cuolr.logs.importing.importer import IMPORTERS, LogImporter, SourceLog
from cuolr.logs.importing.log_rows import ROW_BITS
from cuolr.logs.importing.source_tables import check_columns, features_of, in_turn, read_rows, share_of_bytes
from cuolr.progress import Progress, Share, no_progress, share_of

EMBEDDING = "query_document_embedding"
DIMENSIONS = 768
CLASSICAL = (
    "bm25",
    "bm25_title",
    "bm25_abstract",
    "tf_idf",
    "tf",
    "idf",
    "ql_jelinek_mercer_short",
    "ql_jelinek_mercer_long",
    "ql_dirichlet",
    "document_length",
    "title_length",
    "abstract_length",
)
# Earlier names of two of them.
RENAMED = {"title_bm25": "bm25_title", "abstract_bm25": "bm25_abstract"}
LABEL = "label"
TABLE_COLUMNS = ("query_id", "session_id", "doc_id", "position", "click")

# The share of the time to read rows, roughly; the rest is to find the features of each document.
READING = 0.5


@IMPORTERS.register("baidu-ultr-uva")
class BaiduUltrUvaImporter(LogImporter):
    """`query_no` numbers the lists of a file, `query_md5` names the query, `text_md5` the document.

    Features are the 12 classical ones and, where the file has it, the embedding of 768 numbers, which takes 3 kB of
    memory for each document. Expert labels are in validation.feather, which is refused here.
    """

    def read(self, files: Sequence[Path], progress: Progress = no_progress) -> SourceLog:
        """Read one or more Feather files."""
        done = share_of_bytes(files, progress)
        read = [_rows(file, number, advance) for number, file, advance in in_turn(files, share_of(done, READING))]
        rows = pl.concat(read, how="diagonal")
        features = [name for name in rows.columns if name not in TABLE_COLUMNS]
        candidates = features_of(rows, features) if features else None
        done(1 - READING)
        return SourceLog(rows.select(TABLE_COLUMNS), candidates)


def _rows(file: Path, number: int, progress: Share) -> pl.DataFrame:
    require_file(file)
    check_arrow(file)
    with read_errors(file):
        check_texts(file, pl.scan_ipc(file, glob=False))
        rows = pl.scan_ipc(file, glob=False).rename(RENAMED, strict=False)
        schema = rows.collect_schema()
    if LABEL in schema and "click" not in schema:
        raise InputError(
            f"{file}: these are expert labels, which a log must not have; give them to `cuolr experiment real --labels`"
        )
    check_columns(file, schema, ("query_no", "position", "click"), "a part of Baidu-ULTR (UvA)")
    query = next((name for name in ("query_md5", "query_id") if name in schema), "query_no")
    document = next((name for name in ("text_md5", "url_md5") if name in schema), "")
    if not document:
        check_columns(file, schema, ("text_md5",), "a part of Baidu-ULTR (UvA)")
    kept = rows.select(
        "position",
        "click",
        *feature_columns(schema),
        query_id=pl.col(query).cast(pl.String),
        session_id=pl.col("query_no").cast(pl.Int64) + (number << ROW_BITS),
        doc_id=pl.col(document).cast(pl.String),
    )
    return read_rows(file, kept, progress)


def feature_columns(schema: pl.Schema) -> list[pl.Expr]:
    """The classical features, and a column for each number of the embedding, whichever of them there are."""
    columns = [pl.col(name).cast(pl.Float32).fill_null(0.0) for name in CLASSICAL if name in schema]
    if EMBEDDING in schema:
        numbers = pl.col(EMBEDDING).cast(pl.List(pl.Float32))
        columns += [numbers.list.get(i, null_on_oob=True).alias(f"bert_{i}") for i in range(DIMENSIONS)]
    return columns
