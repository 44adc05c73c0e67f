"""Import of a click log: of your own, from a table, or of another system or a public data set."""

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from cuolr.data.candidate_reader import read_candidates
from cuolr.data.feature_tables import FeatureTables
from cuolr.data.frames import Table
from cuolr.data.letor.reader import LetorOptions
from cuolr.data.tables import read_errors
from cuolr.errors import InputError
from cuolr.files import size_of
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.importing.import_options import ImportOptions
from cuolr.logs.importing.import_report import ImportReport, check_dropped
from cuolr.logs.importing.importer import IMPORTERS, SourceLog
from cuolr.logs.importing.log_rows import find_tables, scan_log
from cuolr.logs.importing.table import read_log_table
from cuolr.progress import Stages, no_stages
from cuolr.registry import did_you_mean
from cuolr.types import Candidates

TABLE = "table"
OPTION_NAMES = tuple(field.name for field in fields(ImportOptions))


def import_log(
    table: Table | Sequence[Path | str], features: Table | FeatureTables | Candidates | None = None, **options: Any
) -> ClickLog:
    """Read, check and repair a click log; what is repaired or dropped is counted in a warning.

    Args:
        table: A row per shown document: query_id, session_id, position, doc_id, click (0 or 1) and, where known,
            logging_propensity, examination, timestamp, reward, user_id and randomised (0 or 1: the list was in random
            order). A DataFrame of polars or pandas; or a path or a pattern, or several, of Parquet, Feather, CSV or
            JSON lines.
        features: The documents of each query: query_id, doc_id and a column per feature. A DataFrame, or the path of
            a table or a LETOR file. Or `FeatureTables`, for features of documents, queries and impressions. None = the
            documents that the log shows, without features: for examination, click rates and judgments, not to train a
            ranker.
        options: The attributes of `ImportOptions`, such as `k=10`, `columns={"doc_id": "product_id"}` or
            `reward="click=1,purchase=10"`.

    Returns:
        A row per session, sorted by session id.

    Raises:
        InputError: With all that is wrong.
    """
    if unknown := options.keys() - set(OPTION_NAMES):
        known = ", ".join(OPTION_NAMES)
        raise InputError(
            [f"unknown option '{name}'{did_you_mean(name, OPTION_NAMES)}; known: {known}" for name in sorted(unknown)]
        )
    log, report = import_log_with_report(table, features, ImportOptions(**options))
    report.warn()
    return log


def import_log_with_report(
    table: Table | Sequence[Path | str],
    features: Table | FeatureTables | Candidates | None = None,
    options: ImportOptions = ImportOptions(),
    format: str = TABLE,  # noqa: A002
    letor: LetorOptions = LetorOptions(),
    stages: Stages = no_stages,
) -> tuple[ClickLog, ImportReport]:
    """The same as `import_log`, also for other formats, with a report of what was kept, repaired and dropped.

    Args:
        table: A table, or the files of the format.
        features: In place of the features of the data set, if it has any.
        options: How to import.
        format: A registered format, such as `ubi`.
        letor: How to read LETOR.
        stages: Receives what was read so far.
    """
    try:
        given = None if features is None else read_features(features, options, letor, stages)
    except InputError as error:
        others = _problems_of_columns(table, options) if format == TABLE else []
        raise InputError([*error.problems, *others]) from None
    return import_source(read_source(table, format, options, stages), given, options, stages)


def _problems_of_columns(table: Table | Sequence[Path | str], options: ImportOptions) -> list[str]:
    """What is wrong with the columns of a log, to be reported together with what is wrong with its features."""
    try:
        scan_log(table, options)
    except InputError as error:
        return error.problems
    return []


def read_features(
    features: Table | FeatureTables | Candidates,
    options: ImportOptions,
    letor: LetorOptions = LetorOptions(),
    stages: Stages = no_stages,
) -> Candidates | FeatureTables:
    """The candidates, if one file or data frame has them; several tables are read along with the log.

    Args:
        features: As `import_log` takes them.
        options: How to import; ids are called as in the log.
        letor: How to read LETOR.
        stages: Receives what was read so far.
    """
    if isinstance(features, Candidates):
        return features
    tables = features if isinstance(features, FeatureTables) else FeatureTables(features)
    if not tables.is_one_table:
        return tables
    return read_candidates(tables.with_ids(options.columns, options.one_query), letor, stages=stages)


def read_source(
    table: Table | Sequence[Path | str],
    format: str,  # noqa: A002
    options: ImportOptions,
    stages: Stages = no_stages,
) -> SourceLog:
    """Read what is to be imported.

    Args:
        table: Files of the format, patterns of their names, or, as a table, a data frame.
        format: A registered format.
        options: How to import.
        stages: Receives the bytes of the files that were read so far.
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
        progress = stages(
            f"reading {files[0].name if len(files) == 1 else f'{len(files)} files'}", sum(map(size_of, files))
        )
        return replace(importer().read(files, progress), files=names)


def import_source(
    source: SourceLog,
    features: Candidates | FeatureTables | None,
    options: ImportOptions,
    stages: Stages = no_stages,
) -> tuple[ClickLog, ImportReport]:
    """Check and repair what an importer read.

    Args:
        source: The log.
        features: The documents of each query, or the tables that have them; None = those of the source or, without any,
            the documents shown.
        options: How to import.
        stages: See `read_log_table`.

    Raises:
        InputError: As `read_log_table` does. What the importer dropped counts as what is dropped of the table.
    """
    name = source.files[0] if len(source.files) == 1 else f"{len(source.files)} files"
    if options.strict and (problems := [line for loss in source.losses for line in loss.lines()]):
        raise InputError([f"{name}: {line}" for line in problems])
    known = features if features is not None else source.candidates
    without = ("the log has no features: it serves for examination, click rates and judgments",)
    log, report = read_log_table(source.table, known, options, stages)
    report = replace(
        report,
        tables=source.files or report.tables,
        source_notes=source.notes + (without if known is None else ()),
        source=source.report,
        source_losses=source.losses,
    )
    if source.losses:
        check_dropped(report, options.max_dropped, name)
    return log, report
