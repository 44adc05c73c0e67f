"""A click log from the records of User Behavior Insights (UBI)."""

from collections.abc import Sequence
from pathlib import Path

from cuolr.data.feature_tables import FeatureTables
from cuolr.data.frames import Table
from cuolr.data.letor.reader import LetorOptions
from cuolr.errors import InputError
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.importing.import_log import read_features
from cuolr.logs.importing.import_options import ImportOptions
from cuolr.logs.importing.seen_documents import seen_documents
from cuolr.logs.importing.table import read_log_table
from cuolr.logs.importing.ubi import read_ubi
from cuolr.logs.importing.ubi_report import UbiReport
from cuolr.types import Candidates


def import_ubi(
    files: Path | str | Sequence[Path | str],
    features: Table | FeatureTables | Candidates | None = None,
    options: LetorOptions = LetorOptions(),
) -> tuple[ClickLog, UbiReport]:
    """Read a click log from UBI queries and events, schema 1.0 to 1.3.

    Args:
        files: NDJSON or Parquet, with queries, events or both.
        features: The documents of each query: query_id (the query's text), doc_id and a column per feature. None = the
            documents that the log shows, without features: for click rates and judgments, not to train a ranker. Or
            `FeatureTables`, for features of documents and queries.
        options: How to read LETOR features.

    Returns:
        log: A row per list.
        report: What was found, kept and dropped, by reason.

    Raises:
        InputError: If no list can be used, or if the features lack documents.
    """
    table, report = read_ubi([files] if isinstance(files, Path | str) else files)
    if not len(table):
        reasons = "; ".join(f"{reason}: {number:,}" for reason, number in report.dropped.items())
        raise InputError(
            f"expected UBI lists with a query text and impressions, found {report.lists:,} lists, none of them usable"
            f"{f' ({reasons})' if reasons else ''}, in {report.queries:,} queries and {report.events:,} events"
        )
    if features is None:
        features = seen_documents(table)
    strictly = ImportOptions(strict=True)
    log, _ = read_log_table(table, read_features(features, strictly, options), strictly)
    return log, report
