"""Import of your own click log: a table of shown and clicked documents, and the documents' features."""

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from cuolr.data.candidate_reader import read_candidates
from cuolr.data.feature_tables import FeatureTables
from cuolr.data.frames import Table
from cuolr.data.letor.reader import LetorOptions
from cuolr.errors import InputError
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.importing.import_options import ImportOptions
from cuolr.logs.importing.import_report import ImportReport
from cuolr.logs.importing.table import read_log_table
from cuolr.registry import did_you_mean
from cuolr.types import Candidates

OPTION_NAMES = tuple(field.name for field in fields(ImportOptions))


def import_log(
    table: Table | Sequence[Path | str], features: Table | FeatureTables | Candidates, **options: Any
) -> ClickLog:
    """Read, check and repair a click log; what is repaired or dropped is counted in a warning.

    Args:
        table: A row per shown document: query_id, session_id, position, doc_id, click (0 or 1) and, where known,
            logging_propensity, examination, timestamp, reward and user_id. A DataFrame of polars or pandas; or a path
            or a pattern, or several, of Parquet, Feather, CSV or JSON lines.
        features: The documents of each query: query_id, doc_id and a column per feature. A DataFrame, or the path of
            a table or a LETOR file. Or `FeatureTables`, for features of documents, queries and impressions.
        options: The attributes of `ImportOptions`, such as `k=10`, `columns={"doc_id": "product_id"}` or
            `reward="click=1,purchase=10"`.

    Returns:
        A row per session, sorted by session id.

    Raises:
        InputError: With all that is wrong.
    """
    if unknown := options.keys() - set(OPTION_NAMES):
        raise InputError([f"unknown option '{name}'{did_you_mean(name, OPTION_NAMES)}" for name in sorted(unknown)])
    log, report = import_log_with_report(table, features, ImportOptions(**options))
    report.warn()
    return log


def import_log_with_report(
    table: Table | Sequence[Path | str],
    features: Table | FeatureTables | Candidates,
    options: ImportOptions = ImportOptions(),
) -> tuple[ClickLog, ImportReport]:
    """The same as `import_log`, with a report of what was kept, repaired and dropped in place of a warning."""
    return read_log_table(table, read_features(features, options), options)


def read_features(
    features: Table | FeatureTables | Candidates, options: ImportOptions, letor: LetorOptions = LetorOptions()
) -> Candidates | FeatureTables:
    """The candidates, if one file or data frame has them; several tables are read along with the log.

    Args:
        features: As `import_log` takes them.
        options: How to import; ids are called as in the log.
        letor: How to read LETOR.
    """
    if isinstance(features, Candidates):
        return features
    tables = features if isinstance(features, FeatureTables) else FeatureTables(features)
    if not tables.is_one_table:
        return tables
    return read_candidates(tables.with_ids(options.columns, options.one_query), letor)
