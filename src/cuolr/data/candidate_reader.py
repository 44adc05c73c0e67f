"""Reading the candidates of a log or of a ranking: from LETOR, whose labels are dropped, or from a table."""

from dataclasses import replace
from pathlib import Path

from cuolr.data.feature_options import FeatureOptions
from cuolr.data.feature_tables import FeatureTables, read_feature_tables
from cuolr.data.features import read_feature_table
from cuolr.data.frames import Table, is_path
from cuolr.data.letor.reader import LetorOptions, filled_up, read_file
from cuolr.data.tables import is_table
from cuolr.progress import Stages, no_stages
from cuolr.types import Candidates, FeatureRecipe


def read_candidates(
    source: Table | FeatureTables,
    options: LetorOptions = LetorOptions(),
    n_features: int | None = None,
    columns: FeatureOptions = FeatureOptions(),
    recipe: FeatureRecipe | None = None,
    stages: Stages = no_stages,
) -> Candidates:
    """Read the documents of each query with their features and ids.

    Args:
        source: A DataFrame of polars or pandas with the columns query_id, doc_id and one per feature; a Parquet,
            Feather, CSV, TSV or JSON lines file with the same columns; or a LETOR file. Or `FeatureTables`, to join
            several tables.
        options: How to read LETOR.
        n_features: Number of features of the model that ranks them. LETOR omits zeros, so the last features may not
            occur; see `filled_up`.
        columns: What is a feature, and what to leave out, of one table; `FeatureTables` say so themselves.
        recipe: How columns of a table become numbers, as the model keeps it (`RankingPolicy.recipe`). None = it is
            decided by the table.
        stages: Receives what was read so far.
    """
    if isinstance(source, FeatureTables):
        recipe = source.recipe if recipe is None else recipe
        if source.is_one_table:
            return read_candidates(source.query_document, options, n_features, source.options, recipe, stages)
        return read_feature_tables(replace(source, recipe=recipe), stages=stages)
    if not is_path(source) or is_table(Path(source)):
        return read_feature_table(source, columns, recipe, stages)
    path = Path(source)
    progress = stages(f"reading {path.name}", path.stat().st_size if path.is_file() else None)
    candidates = read_file(path, options, progress).candidates
    return candidates if n_features is None else filled_up(candidates, n_features, path)
