"""A log as one long table with a row for each shown document.

Columns: query_id, session_id, position, doc_id, click (0 or 1, true or false) and, where known, logging_propensity,
examination (0 or 1), timestamp, reward, randomised (0 or 1); others are ignored. The features are in a table of their
own.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from cuolr.data.frames import Table
from cuolr.errors import InputError
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.columns import index_dtype
from cuolr.logs.importing.import_options import ImportOptions
from cuolr.logs.importing.import_report import CUT, Amounts, ImportFinding, ImportReport, check_dropped
from cuolr.logs.importing.log_rows import LogRows, scan_log
from cuolr.logs.importing.problems import row_problems, session_problems
from cuolr.logs.importing.repair import Repair, moved_up
from cuolr.logs.importing.resolve import from_one, read_sessions, resolve, zero_or_one
from cuolr.logs.log_folder import one_each
from cuolr.types import Candidates


def read_log_table(
    table: Table | Sequence[Path | str],
    candidates: Candidates,
    options: ImportOptions = ImportOptions(),
    progress: Callable[[int], None] = lambda _: None,
) -> tuple[ClickLog, ImportReport]:
    """Read, check and repair a long table.

    Args:
        table: Parquet, Feather, CSV or JSON lines: a path or a pattern, or several; or a data frame. Rows in any order.
        candidates: The documents of each query with their ids.
        options: How to import.
        progress: Called with 1 after each of two passes over each file.

    Returns:
        A row per session, sorted by session id, with sessions without a click among them; a session's timestamp is
        its earliest, and its order was random if all of its rows say so. And what became of the table's rows.

    Raises:
        InputError: If nothing can be read. If `strict`, with all problems, the first 20 of each kind.
        TooManyDroppedError: If more has to be dropped than `max_dropped` allows.
    """
    rows = scan_log(table, options)
    session_ids = read_sessions(rows, progress)
    shown = resolve(rows, session_ids, candidates, progress)
    if not len(shown):
        raise InputError(f"{rows.name}: expected a row for each shown document, found no rows")
    first = options.first_position
    if first == "auto":
        first = 1 if options.strict else zero_or_one(shown)
    shown = from_one(shown, first)
    everything = Amounts(len(session_ids), len(shown), _clicks(shown))
    if options.strict:
        _refuse_problems(rows, shown, session_ids, first)
        sessions, placed = len(session_ids), shown
        report = ImportReport(tuple(map(str, rows.places)), first, everything, everything)
    else:
        repair = Repair(rows, shown, session_ids, first)
        shown, sessions = repair.shown, repair.sessions
        placed = moved_up(shown) if repair.repaired else shown
        kept = Amounts(sessions, len(placed), _clicks(placed))
        report = ImportReport(tuple(map(str, rows.places)), first, everything, kept, repair.repaired, repair.dropped)
        check_dropped(report, options.max_dropped, rows.name)
    if options.k is not None:
        placed, report = _cut(placed, options.k, report)
    return _fill(shown, placed, candidates, sessions, options.k), report


def _refuse_problems(rows: LogRows, shown: pl.DataFrame, session_ids: pl.Series, first: int) -> None:
    problems = [*row_problems(rows, shown, first), *session_problems(rows, shown, session_ids, first)]
    if problems:
        raise InputError(problems)


def _clicks(shown: pl.DataFrame) -> int:
    return int((shown["click"] == 1).sum())


def _cut(placed: pl.DataFrame, k: int, report: ImportReport) -> tuple[pl.DataFrame, ImportReport]:
    """The first k documents of each list."""
    kept = placed.filter(pl.col("position") <= k)
    if len(kept) == len(placed):
        return placed, report
    clicks = _clicks(kept)
    cut = ImportFinding(CUT, Amounts(0, report.kept.impressions - len(kept), report.kept.clicks - clicks))
    amounts = Amounts(report.kept.sessions, len(kept), clicks)
    return kept, replace(report, kept=amounts, dropped=(*report.dropped, cut))


def _fill(shown: pl.DataFrame, kept: pl.DataFrame, candidates: Candidates, sessions: int, k: int | None) -> ClickLog:
    """The rows of each session as a list.

    Args:
        shown: All rows of the sessions.
        kept: Those that are in the lists, with their positions there.
        candidates: The documents of each query.
        sessions: How many there are.
        k: Length of the lists. None = the longest.
    """
    longest: Any = kept["position"].max()
    k = longest if k is None else k
    session, position = kept["session"].to_numpy(), kept["position"].to_numpy() - 1

    def lists(name: str, dtype: npt.DTypeLike, nothing: float) -> npt.NDArray[Any]:
        values = np.full((sessions, k), nothing, dtype)
        values[session, position] = kept[name].to_numpy()
        return values

    query = np.empty(sessions, np.int32)
    query[session] = kept["query"].to_numpy()
    known, timestamp, randomised, page_position = shown.columns, None, None, None
    if "page" in kept.columns and (kept["page"] != kept["position"] - 1).any():
        page_position = lists("page", np.int32, -1)
    if "timestamp" in known:
        earliest = shown.group_by("session").agg(pl.col("timestamp").min()).sort("session")
        timestamp = earliest["timestamp"].to_numpy()
    if "randomised" in known:
        in_all_rows = shown.group_by("session").agg(pl.col("randomised").min()).sort("session")
        randomised = in_all_rows["randomised"].to_numpy() == 1
    return ClickLog(
        candidates=candidates,
        query=query,
        ranking=lists("index", index_dtype(candidates), -1),
        clicks=lists("click", np.uint8, 0),
        count=one_each(sessions),
        logging_propensity=lists("logging_propensity", np.float32, 1) if "logging_propensity" in known else None,
        examination=lists("examination", np.uint8, 0) if "examination" in known else None,
        timestamp=timestamp,
        reward=lists("reward", np.float32, 0) if "reward" in known else None,
        page_position=page_position,
        randomised=randomised,
    )
