"""A log as one long table with a row for each shown document.

Columns: query_id, session_id, position, doc_id, click (0 or 1, true or false) and, where known, logging_propensity,
examination (0 or 1), timestamp, reward, randomised (0 or 1), user_id; others are ignored, unless they are named as
features, terms of the reward or context. Features of documents, queries or both are in tables of their own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from cuolr.data.feature_tables import FeatureTables
from cuolr.data.frames import Table
from cuolr.data.tables import ROW
from cuolr.data.text_sizes import text_array
from cuolr.errors import InputError
from cuolr.logs.clicklog import CONTEXT, ClickLog
from cuolr.logs.columns import id_array, index_dtype
from cuolr.logs.contexts import context_levels
from cuolr.logs.importing.import_options import ImportOptions
from cuolr.logs.importing.import_report import (
    CUT,
    POSITION_TWICE,
    Amounts,
    ImportFinding,
    ImportReport,
    check_dropped,
)
from cuolr.logs.importing.left_out import in_window, without_ids, without_repeats
from cuolr.logs.importing.log_candidates import LogCandidates
from cuolr.logs.importing.log_rows import LogRows
from cuolr.logs.importing.problems import ProblemKind, table_problems
from cuolr.logs.importing.repair import Repair, moved_up
from cuolr.logs.importing.resolve import DocumentIndex, from_one, read_sessions, resolve
from cuolr.logs.importing.session_blocks import blocks, survey
from cuolr.logs.log_folder import concatenate
from cuolr.logs.session_files import one_each
from cuolr.progress import Share, Stages, in_shares, no_stages, share_of
from cuolr.types import Candidates

# The share of the time that the first look at a table takes, roughly.
SURVEY_SHARE = 0.2
# The share of the time to read a block in which its rows are read; the rest is to check and repair them.
ROWS_SHARE = 0.8
# What progress is counted in.
PERCENT = 100

# Lists have at most so many times the places that documents take, beyond 16 million.
MAX_PADDING, FREE_PLACES = 64, 1 << 24

# What the lists hold where nothing was shown.
NOTHING = {"ranking": -1, "clicks": 0, "logging_propensity": 1, "examination": 0, "reward": 0, "page_position": -1}


def read_log_table(
    table: Table | Sequence[Path | str],
    features: Candidates | FeatureTables | None,
    options: ImportOptions = ImportOptions(),
    stages: Stages = no_stages,
) -> tuple[ClickLog, ImportReport]:
    """Read, check and repair a long table, some millions of rows at a time.

    Args:
        table: Parquet, Feather, CSV or JSON lines: a path or a pattern, or several; or a data frame. Rows in any order.
        features: The documents of each query with their ids; or the tables that have them; None = those that the table
            shows, without features. If these come from the table, they are those of the sessions in the time window.
        options: How to import.
        stages: Receives what was read so far: of the features, then of the table.

    Returns:
        A row per session, sorted by session id, with sessions without a click among them; a session's timestamp is
        its earliest, and its order was random if all of its rows say so. And what became of the table's rows.

    Raises:
        InputError: If nothing can be read. If `strict`, with all problems, the first 20 of each kind.
        TooManyDroppedError: If more has to be dropped than `max_dropped` allows.
    """
    found = LogCandidates.of(table, features, options, stages)
    rows = found.rows
    progress = in_shares(stages(f"importing {rows.name}", PERCENT), PERCENT)
    known = survey(rows, share_of(progress, SURVEY_SHARE))
    if not known.rows:
        raise InputError(f"{rows.name}: expected a row for each shown document, found no rows")
    first = options.first_position
    if first == "auto":
        first = 1 if options.strict else known.first_position
    importer = _Importer(DocumentIndex(found.candidates, found.variants), found.candidates, options, first)
    of_blocks = share_of(progress, 1 - SURVEY_SHARE)
    for block, share in blocks(rows, known, of_blocks):
        of_block = share_of(of_blocks, share)
        importer.read(block, share_of(of_block, ROWS_SHARE))
        of_block(1 - ROWS_SHARE)
    from_zero = f"{rows.name}: positions seem to be counted from 0; if so, say first_position=0"
    log, report = importer.finish(rows.name, [from_zero] if first > known.first_position else ())
    kept, report = in_window(log, replace(report, guesses=rows.notes), options.window)
    return without_ids(kept if len(kept) == len(log) else found.of_sessions(kept, stages), options), report


class _Importer:
    """Reads one block after the other."""

    def __init__(self, documents: DocumentIndex, candidates: Candidates, options: ImportOptions, first: int) -> None:
        """Prepare.

        Args:
            documents: What finds a document by its id.
            candidates: The documents of each query.
            options: How to import.
            first: The number of the first position of a page.
        """
        self._candidates, self._options, self._first = candidates, options, first
        self._documents = documents
        self._logs: list[ClickLog] = []
        self._reports: list[ImportReport] = []
        self._problems: list[list[ProblemKind]] = []

    def read(self, rows: LogRows, progress: Share) -> None:
        """Read, check and repair the rows of some sessions; `progress` takes the share that was read since then."""
        session_ids = read_sessions(rows)
        shown = from_one(resolve(rows, session_ids, self._documents, progress), self._first)
        placed = shown
        everything = Amounts(len(session_ids), len(shown), _clicks(shown))
        report = ImportReport(tuple(map(str, rows.places)), self._first, everything, everything)
        if self._options.strict:
            self._problems.append(table_problems(rows, shown, session_ids, self._first))
            if any(kind.total for kind in self._problems[-1]):
                return
        else:
            repair, repeated = Repair(rows, shown, session_ids, self._first), None
            if any(found.reason == POSITION_TWICE for found in repair.dropped):
                others, repeated = without_repeats(rows, shown)
                repair = Repair(rows, others, session_ids, self._first) if repeated else repair
            shown, session_ids = repair.shown, repair.session_ids
            placed = moved_up(shown) if repair.repaired else shown
            kept = Amounts(len(session_ids), len(placed), _clicks(placed))
            dropped = (*repair.dropped, *([repeated] if repeated else []))
            report = replace(report, kept=kept, repaired=repair.repaired, dropped=dropped)
        if self._options.k is not None:
            placed, report = _cut(placed, self._options.k, report)
        self._reports.append(report)
        if len(session_ids):
            self._logs.append(_fill(shown, placed, self._candidates, session_ids))

    def finish(self, name: str, hints: Sequence[str] = ()) -> tuple[ClickLog, ImportReport]:
        """The log of all blocks; raises if there are problems that are not allowed, with hints before them."""
        kinds = [reduce(add, of_blocks) for of_blocks in zip(*self._problems, strict=True)]
        if problems := [line for kind in kinds for line in kind.text(name)]:
            raise InputError([*hints, *problems])
        report = reduce(add, self._reports)
        if not self._options.strict:
            check_dropped(report, self._options.max_dropped, name)
        k = self._options.k or max(log.k for log in self._logs)
        rows = sum(map(len, self._logs))
        check_padding(rows, k, report.kept.impressions)
        with_pages = any(log.page_position is not None for log in self._logs)
        log = concatenate(self._widened(k, with_pages), rows)
        context_levels(log)  # raises if there are too many
        return log, report

    def _widened(self, k: int, with_pages: bool) -> Iterator[ClickLog]:
        """The logs of the blocks, with the same columns and lists of the same length; one is forgotten once read."""
        while self._logs:
            log = self._logs.pop(0)
            if with_pages and log.page_position is None:
                log = replace(log, page_position=np.where(log.where, np.arange(log.k, dtype=np.int32), np.int32(-1)))
            if log.k < k:
                columns = {
                    name: np.pad(values, ((0, 0), (0, k - log.k)), constant_values=NOTHING[name])
                    if values.ndim == 2
                    else values
                    for name, values in log.columns.items()
                }
                log = ClickLog.from_columns(log.candidates, columns, log.aggregated)
            yield log


def check_padding(sessions: int, k: int, impressions: int) -> None:
    """Raise if lists, each of which takes the room of the longest, would be nearly empty and large."""
    if sessions * k > max(FREE_PLACES, MAX_PADDING * impressions):
        raise InputError(
            f"the longest list has {k:,} documents, {sessions:,} lists have {impressions / sessions:,.1f} on average; "
            "truncate them with k=N"
        )


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


def _fill(shown: pl.DataFrame, kept: pl.DataFrame, candidates: Candidates, session_ids: pl.Series) -> ClickLog:
    """The rows of each session as a list, as long as the longest.

    Args:
        shown: All rows of the sessions.
        kept: Those that are in the lists, with their positions there.
        candidates: The documents of each query.
        session_ids: The id of each session.
    """
    sessions = len(session_ids)
    k: Any = kept["position"].max()
    check_padding(sessions, k, len(kept))
    session, position = kept["session"].to_numpy(), kept["position"].to_numpy() - 1

    def lists(name: str, column: str, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        values = np.full((sessions, k), NOTHING[name], dtype)
        values[session, position] = kept[column].to_numpy()
        return values

    query = np.empty(sessions, np.int32)
    query[session] = kept["query"].to_numpy()
    columns = {
        "query": query,
        "ranking": lists("ranking", "index", index_dtype(candidates)),
        "clicks": lists("clicks", "click", np.uint8),
        "count": one_each(sessions),
    }
    for name, dtype in {"logging_propensity": np.float32, "examination": np.uint8, "reward": np.float32}.items():
        if name in kept.columns:
            columns[name] = lists(name, name, dtype)
    if "page" in kept.columns and (kept["page"] != kept["position"] - 1).any():
        columns["page_position"] = lists("page_position", "page", np.int32)
    if "timestamp" in shown.columns:
        earliest = shown.group_by("session").agg(pl.col("timestamp").min()).sort("session")
        columns["timestamp"] = earliest["timestamp"].to_numpy()
    if "randomised" in shown.columns:
        in_all_rows = shown.group_by("session").agg(pl.col("randomised").min()).sort("session")
        columns["randomised"] = in_all_rows["randomised"].to_numpy() == 1
    columns["session_id"] = id_array(session_ids)
    if "user_id" in shown.columns:
        # The greatest is not empty if any is known.
        users = shown.group_by("session").agg(pl.col("user_id").max()).sort("session")
        columns["user_id"] = id_array(users["user_id"])
    for name in shown.columns:
        if name.startswith(CONTEXT):
            first = shown.sort(ROW).group_by("session").agg(pl.col(name).first()).sort("session")
            columns[name] = text_array(first[name])
    return ClickLog.from_columns(candidates, columns, aggregated=False)
