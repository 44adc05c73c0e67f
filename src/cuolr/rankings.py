"""Rankings as files: Parquet, CSV, or a run as `trec_eval` reads it."""

from pathlib import Path

from cuolr.data.tables import write_errors
from cuolr.files import atomic_file
from cuolr.trec import ranked_documents, write_run
from cuolr.types import Candidates, Ints

SUFFIXES = (".parquet", ".pq", ".csv", ".trec", ".run")


def write_rankings(path: Path, candidates: Candidates, ranking: Ints) -> None:
    """Write rankings, a row per document: query_id, position (from 1), doc_id. All or nothing.

    Where the candidates have no document ids, a document is named by its number within the query, from 1.

    Args:
        path: Its name says what it is, one of `SUFFIXES`: `.parquet`, `.csv`, or `.trec` or `.run` for a TREC run.
        candidates: What was ranked.
        ranking: [n_queries, k] slots, −1 after the last document.
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
            table.write_csv(unfinished)
        else:
            table.write_parquet(unfinished)
