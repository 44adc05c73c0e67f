"""Reading the candidates of a log or of a ranking: from LETOR, whose labels are dropped, or from a table."""

from pathlib import Path

from cuolr.data.features import read_feature_table
from cuolr.data.frames import Table, is_path
from cuolr.data.letor.reader import LetorOptions, filled_up, read_file
from cuolr.data.tables import COMMAS, JSON_LINES, PARQUET, TABS
from cuolr.errors import InputError
from cuolr.progress import Stages, unseen_stages
from cuolr.types import Candidates


def read_candidates(
    source: Table,
    options: LetorOptions = LetorOptions(),
    n_features: int | None = None,
    stages: Stages = unseen_stages,
) -> Candidates:
    """Read the documents of each query with their features and ids.

    Args:
        source: A DataFrame of polars or pandas with the columns query_id, doc_id and one per feature; a Parquet file
            with the same columns; or a LETOR file.
        options: How to read LETOR.
        n_features: Number of features of the model that ranks them. LETOR omits zeros, so the last features may not
            occur; see `filled_up`.
        stages: Told of the bytes that were read so far; Parquet is read at once.
    """
    if not is_path(source) or Path(source).suffix.lower() in PARQUET:
        stages("reading features", None)
        return read_feature_table(source)
    path = Path(source)
    progress = stages(f"reading {path.name}", path.stat().st_size if path.is_file() else None)
    try:
        candidates = read_file(path, options, progress).candidates
    except InputError:
        if path.is_file() and path.name.lower().endswith(COMMAS + TABS + JSON_LINES):
            raise InputError(f"{path}: features must be Parquet or LETOR; convert this table to Parquet") from None
        raise
    return candidates if n_features is None else filled_up(candidates, n_features, path)
