"""Import of your own click log: a table of shown and clicked documents, and the documents' features."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from cuolr.data.candidate_reader import read_candidates
from cuolr.data.frames import Table
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.importing.import_options import FirstPosition, ImportOptions
from cuolr.logs.importing.import_report import ImportReport
from cuolr.logs.importing.table import read_log_table
from cuolr.types import Candidates


def import_log(
    table: Table | Sequence[Path | str],
    features: Table | Candidates,
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
            a Parquet or LETOR file.
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
    options = ImportOptions(k, strict, max_dropped, columns or {}, first_position, reward, context)
    log, report = import_log_with_report(table, features, options)
    report.warn()
    return log


def import_log_with_report(
    table: Table | Sequence[Path | str], features: Table | Candidates, options: ImportOptions = ImportOptions()
) -> tuple[ClickLog, ImportReport]:
    """The same as `import_log`, with a report of what was kept, repaired and dropped in place of a warning."""
    candidates = features if isinstance(features, Candidates) else read_candidates(features)
    return read_log_table(table, candidates, options)
