"""Documents to rank, or that a log names: from LETOR, whose labels are dropped, or from a table of features."""

from pathlib import Path

from cuolr.data.features import read_feature_table
from cuolr.data.frames import Table, is_path
from cuolr.data.letor.reader import LetorOptions, filled_up, read_letor
from cuolr.data.tables import PARQUET
from cuolr.types import Candidates


def read_candidates(source: Table, options: LetorOptions = LetorOptions(), n_features: int | None = None) -> Candidates:
    """Read the documents of each query with their features and ids.

    Args:
        source: A DataFrame of polars or pandas with the columns query_id, doc_id and one per feature; a Parquet file
            of the same, by its name; else a LETOR file.
        options: How to read LETOR.
        n_features: Of the model that is to rank them. LETOR leaves zeros out, so the last features may not occur:
            they are filled up; see `filled_up`.
    """
    if not is_path(source) or Path(source).suffix.lower() in PARQUET:
        return read_feature_table(source)
    path = Path(source)
    candidates = read_letor(path, options).candidates
    return candidates if n_features is None else filled_up(candidates, n_features, path)
