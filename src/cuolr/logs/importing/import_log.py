"""Import of your own click log: a table of shown and clicked documents, and the documents' features."""

from cuolr.data.candidate_reader import read_candidates
from cuolr.data.frames import Table
from cuolr.data.letor.reader import LetorOptions
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.importing.table import read_log_table
from cuolr.types import Candidates


def import_log(
    table: Table, features: Table | Candidates, k: int | None = None, options: LetorOptions = LetorOptions()
) -> ClickLog:
    """Read and check a click log.

    Args:
        table: A row per shown document: query_id, session_id, position (from 1), doc_id, click (0 or 1) and, where
            known, logging_propensity, examination, timestamp and reward. A DataFrame of polars or pandas, or the path
            of a Parquet, CSV or JSON lines file.
        features: The documents of each query: query_id, doc_id and a column per feature. A DataFrame, or the path of
            a Parquet or LETOR file.
        k: Length of the lists; longer ones are truncated. None = the longest.
        options: How to read LETOR.

    Returns:
        A row per session, sorted by session id.

    Raises:
        InputError: All problems, up to 20 of each kind.
    """
    candidates = features if isinstance(features, Candidates) else read_candidates(features, options)
    return read_log_table(table, candidates, k)
