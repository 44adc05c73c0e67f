"""Import of a click log: of your own, from a table, or of another system or a public data set."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from cuolr.data.candidate_reader import read_candidates
from cuolr.data.feature_tables import FeatureTables
from cuolr.data.frames import Table
from cuolr.data.letor.reader import LetorOptions
from cuolr.data.tables import read_errors
from cuolr.errors import InputError
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.importing.import_options import FirstPosition, ImportOptions
from cuolr.logs.importing.import_report import ImportReport
from cuolr.logs.importing.importer import IMPORTERS, SourceLog
from cuolr.logs.importing.log_rows import find_tables, scan_log
from cuolr.logs.importing.seen_documents import seen_documents
from cuolr.logs.importing.table import read_log_table
from cuolr.types import Candidates

TABLE = "table"


def import_log(
    table: Table | Sequence[Path | str],
    features: Table | FeatureTables | Candidates | None = None,
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
            logging_propensity, examination, timestamp, reward and randomised (0 or 1: the list was in random order). A
            DataFrame of polars or pandas; or a path or a pattern, or several, of Parquet, Feather, CSV or JSON lines.
        features: The documents of each query: query_id, doc_id and a column per feature. A DataFrame, or the path of
            a table or a LETOR file. Or `FeatureTables`, for features of documents, queries and impressions. None = the
            documents that the log shows, without features: for examination, click rates and judgments, not to train a
            ranker.
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
    features: Table | FeatureTables | Candidates | None = None,
    options: ImportOptions = ImportOptions(),
    format: str = TABLE,  # noqa: A002
) -> tuple[ClickLog, ImportReport]:
    """The same as `import_log`, also for other formats, with a report of what was kept, repaired and dropped.

    Args:
        table: A table, or the files of the format.
        features: In place of the features of the data set, if it has any.
        options: How to import.
        format: A registered format, such as `ubi`.
    """
    given = None if features is None else read_features(features, options.columns)
    return import_source(read_source(table, format, options), given, options)


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


def read_source(table: Table | Sequence[Path | str], format: str, options: ImportOptions) -> SourceLog:  # noqa: A002
    """Read what is to be imported.

    Args:
        table: Files of the format, patterns of their names, or, as a table, a data frame.
        format: A registered format.
        options: How to import.
    """
    importer = IMPORTERS.get(format)
    is_files = isinstance(table, str | Path | list | tuple)
    if format == TABLE and not is_files:
        return SourceLog(table)
    if not is_files:
        raise InputError(f"format '{format}': expected files, found an object of type {type(table).__name__}")
    if format != TABLE and options.columns:
        raise InputError(f"columns: the columns of format '{format}' are known; columns are named for tables only")
    files = list(find_tables([table] if isinstance(table, str | Path) else table))
    names = tuple(map(str, files))
    with read_errors(names[0] if len(names) == 1 else f"{len(names)} files of format '{format}'"):
        return replace(importer().read(files), files=names)


def import_source(
    source: SourceLog,
    features: Candidates | FeatureTables | None,
    options: ImportOptions,
    progress: Callable[[float], None] = lambda _: None,
) -> tuple[ClickLog, ImportReport]:
    """Check and repair what an importer read.

    Args:
        source: The log.
        features: The documents of each query, or the tables that have them; None = those of the source or, without any,
            the documents shown.
        options: How to import.
        progress: See `read_log_table`.
    """
    known = features if features is not None else source.candidates
    notes = source.notes
    if known is None:
        rows = scan_log(source.table, options)
        with read_errors(rows.name):
            known = seen_documents([part for part, _ in rows.scans()])
        notes = (*notes, "the log has no features: it serves for examination, click rates and judgments")
    log, report = read_log_table(source.table, known, options, progress)
    return log, replace(report, tables=source.files or report.tables, source_notes=notes, source=source.report)
