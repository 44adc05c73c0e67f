"""Import of your own click log: a table of shown and clicked documents, and the documents' features."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from cuolr.data.candidate_reader import read_candidates
from cuolr.data.feature_tables import FeatureTables
from cuolr.data.frames import Table
from cuolr.data.letor.reader import LetorOptions
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.importing.import_options import FirstPosition, ImportOptions
from cuolr.logs.importing.import_report import ImportReport
from cuolr.logs.importing.table import read_log_table
from cuolr.types import Candidates


def import_log(
    table: Table | Sequence[Path | str],
    features: Table | FeatureTables | Candidates,
    *,
    k: int | None = None,
    strict: bool = False,
    max_dropped: float = 0.05,
    columns: Mapping[str, str] | None = None,
    first_position: FirstPosition = "auto",
    reward: str | Mapping[str, float] | None = None,
    context: Sequence[str] = (),
) -> ClickLog:
    """Read, check and repair a click log; what is repaired or dropped is counted in a warning.

    Args:
        table: A row per shown document: query_id, session_id, position, doc_id, click (0 or 1) and, where known,
            logging_propensity, examination, timestamp and reward. A DataFrame of polars or pandas; or a path or a
            pattern, or several, of Parquet, Feather, CSV or JSON lines.
        features: The documents of each query: query_id, doc_id and a column per feature. A DataFrame, or the path of
            a table or a LETOR file. Or `FeatureTables`, for features of documents, queries and impressions.
        k: Length of the lists; longer ones are truncated. None = the longest.
        strict: Whether every problem is an error.
        max_dropped: The largest share of the sessions, the impressions or the clicks that may be dropped.
        columns: The table's name of a column where it has another than ours, such as `{"doc_id": "product_id"}`.
        first_position: The number of the first position of a page. "auto" = 0 if positions start there, else 1; always
            1 if `strict`.
        reward: Columns with weights, such as "click=1,cart=3,purchase=10" or `{"click": 1, "purchase": 10}`; or one
            column, such as "revenue". None = the column reward, if there is one.
        context: Columns that describe the session, such as device or layout, on which examination may depend.

    Returns:
        A row per session, sorted by session id.

    Raises:
        InputError: With all that is wrong.
    """
    named = columns or {}
    options = ImportOptions(k, strict, max_dropped, named, first_position, reward=reward, context=context)
    log, report = import_log_with_report(table, features, options)
    report.warn()
    return log


def import_log_with_report(
    table: Table | Sequence[Path | str],
    features: Table | FeatureTables | Candidates,
    options: ImportOptions = ImportOptions(),
) -> tuple[ClickLog, ImportReport]:
    """The same as `import_log`, with a report of what was kept, repaired and dropped in place of a warning."""
    return read_log_table(table, read_features(features, options.columns), options)


def read_features(
    features: Table | FeatureTables | Candidates, columns: Mapping[str, str], letor: LetorOptions = LetorOptions()
) -> Candidates | FeatureTables:
    """The candidates, if one file or data frame has them; several tables are read along with the log.

    Args:
        features: As `import_log` takes them.
        columns: Other names of id columns.
        letor: How to read LETOR.
    """
    if isinstance(features, Candidates):
        return features
    tables = features if isinstance(features, FeatureTables) else FeatureTables(features)
    return read_candidates(tables.with_columns(columns), letor) if tables.is_one_table else tables
