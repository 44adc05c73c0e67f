"""Tolerant import: what can be repaired is repaired, other sessions with a problem are dropped, all of it counted.

Repaired are lists that start late or have gaps, whose documents move up, and documents without features, which leave a
gap. Positions on the page stay as they were. Click counts, rewards without a click and negative rewards are repaired
where rows are resolved, and counted here, as are contexts that change within a session.
"""

from collections.abc import Callable, Iterator

import numpy as np
import polars as pl

from cuolr.data.tables import ROW
from cuolr.logs.importing.import_report import (
    MAX_EXAMPLES,
    POSITION_TWICE,
    SEVERAL_QUERIES,
    Amounts,
    ImportFinding,
)
from cuolr.logs.importing.log_rows import LogRows
from cuolr.logs.importing.problems import (
    NO_SESSION,
    WITHOUT_FEATURES,
    Found,
    RowProblem,
    changing_contexts,
    position_problems,
    quote,
    repair_kinds,
    repeated_documents,
    row_kinds,
    several_queries,
)
from cuolr.types import Bools, Ints

GOOD = -1


class Repair:
    """What is wrong with each session of a table, and what is done about it.

    Attributes:
        shown: The rows of the sessions that are kept, those of documents without features among them. Sessions are
            numbered anew, in the same order.
        session_ids: Their ids.
        repaired: What was changed, by kind.
        dropped: What is not kept, by reason.
    """

    def __init__(self, rows: LogRows, shown: pl.DataFrame, session_ids: pl.Series, first: int) -> None:
        """Find what is wrong.

        Args:
            rows: The table.
            shown: Its rows, resolved, with positions from 1; see `resolve`.
            session_ids: The id of each session.
            first: The number of the first position of a page in the table.
        """
        self._rows, self._all, self._ids, self._first = rows, shown, session_ids, first
        # Rows without a session are together in one more, which is never kept.
        self._session = shown["session"].fill_null(len(session_ids)).to_numpy()
        self._reason_of = np.full(len(session_ids) + 1, GOOD, np.int8)
        self._reasons: dict[str, list[str]] = {}
        kinds = row_kinds(shown.columns, first)
        # All at once, because most tables have few of them.
        occurs = shown.select(kind.bad.any().alias(str(i)) for i, kind in enumerate(kinds)).row(0)
        occurring = [kind for kind, found in zip(kinds, occurs, strict=True) if found]
        for kind in sorted(occurring, key=lambda kind: kind.reason != NO_SESSION):
            if kind.reason != WITHOUT_FEATURES:
                self._drop_by_row(kind)
        (removed,) = (kind for kind in kinds if kind.reason == WITHOUT_FEATURES)
        late, gaps = self._drop_by_list(removed)
        kept = self._kept_rows()
        lists = [("list that starts late", late), ("gap in the positions", gaps)]
        lists += [("context that changes, the first value is kept", found) for found in changing_contexts(kept)]
        self.repaired = (*self._repairs(kept, lists, removed), *self._repaired_rows(kept))
        self.dropped = tuple(self._losses(kept))
        good = self._reason_of[:-1] == GOOD
        self.session_ids = session_ids.filter(pl.Series(good))
        self.shown = kept if good.all() else _renumbered(kept, good)

    def _kept_rows(self) -> pl.DataFrame:
        keep = self._reason_of[self._session] == GOOD
        return self._all if keep.all() else self._all.filter(pl.Series(keep))

    def _drop(self, reason: str, sessions: Ints, examples: Callable[[Ints], list[str]]) -> None:
        """Drop sessions, unless they are already.

        Args:
            reason: Why.
            sessions: One or more times each.
            examples: A line for each of the given places in `sessions`.
        """
        new = np.flatnonzero(self._reason_of[sessions] == GOOD)
        if not len(new):
            return
        known = self._reasons.setdefault(reason, [])
        _, first_of_each = np.unique(sessions[new], return_index=True)
        known += examples(new[np.sort(first_of_each)[: MAX_EXAMPLES - len(known)]])
        self._reason_of[sessions] = np.where(
            self._reason_of[sessions] == GOOD, list(self._reasons).index(reason), self._reason_of[sessions]
        )

    def _drop_by_row(self, kind: RowProblem) -> None:
        bad = self._all.select(ROW, "session", bad=kind.bad).filter("bad").sort(ROW)
        numbers = bad[ROW].to_numpy()
        sessions = bad["session"].fill_null(len(self._ids)).to_numpy()
        self._drop(kind.reason, sessions, lambda places: self._row_lines(kind, numbers[places]))

    def _row_lines(self, kind: RowProblem, numbers: Ints) -> list[str]:
        return [kind.line(self._rows, row) for row in self._rows.at(numbers.tolist())] if len(numbers) else []

    def _drop_by_list(self, removed: RowProblem) -> tuple[Found, Found]:
        """Drop what makes no list.

        Args:
            removed: The problem of a document without features.

        Returns:
            The sessions that start late, and those with gaps.
        """
        kept, n = self._kept_rows(), len(self._ids)
        self._drop_found(SEVERAL_QUERIES, (np.flatnonzero(several_queries(kept, n)), lambda _: "several queries"), kept)
        everything = np.ones(n, np.bool_)
        late, again, gaps = position_problems(kept, everything, self._first - 1)
        self._drop_found(POSITION_TWICE, again, kept)
        self._drop_found("document twice", repeated_documents(kept, everything, self._first - 1), kept)
        with_document = np.zeros(n, np.bool_)
        with_document[kept.filter(pl.col("index").is_not_null())["session"].to_numpy()] = True
        shown = np.zeros(n, np.bool_)
        shown[kept["session"].to_numpy()] = True
        nothing = np.flatnonzero(shown & ~with_document)
        self._drop(
            "no document with features",
            nothing,
            lambda places: self._row_lines(removed, np.array(list(_first_rows(kept, nothing[places]).values()))),
        )
        return late, gaps

    def _drop_found(self, reason: str, found: Found, kept: pl.DataFrame) -> None:
        sessions, text = found
        self._drop(reason, sessions, lambda places: self._session_lines(sessions, text, places, kept))

    def _session_lines(self, sessions: Ints, text: Callable[[int], str], places: Ints, kept: pl.DataFrame) -> list[str]:
        """An example of each place, with the first row of its session."""
        chosen = sessions[places]
        first_row = _first_rows(kept, chosen)
        return [
            f"{self._rows.place(first_row[session])}: session {quote(self._ids[session])}: {text(place)}"
            for session, place in zip(chosen.tolist(), places.tolist(), strict=True)
        ]

    def _repairs(
        self, kept: pl.DataFrame, lists: list[tuple[str, Found]], removed: RowProblem
    ) -> Iterator[ImportFinding]:
        for reason, (sessions, text) in lists:
            places = np.flatnonzero(self._reason_of[sessions] == GOOD)
            if not len(places):
                continue
            repaired, first_of_each = np.unique(sessions[places], return_index=True)
            examples = self._session_lines(sessions, text, places[first_of_each[:MAX_EXAMPLES]], kept)
            yield ImportFinding(reason, Amounts(len(repaired), 0, 0), tuple(examples))
        if kept["index"].null_count():
            yield self._repaired(removed, kept.filter(pl.col("index").is_null()))

    def _repaired_rows(self, kept: pl.DataFrame) -> Iterator[ImportFinding]:
        for kind in repair_kinds(kept.columns):
            rows = kept.filter(kind.bad)
            if len(rows):
                yield self._repaired(kind, rows)

    def _repaired(self, kind: RowProblem, rows: pl.DataFrame) -> ImportFinding:
        first = rows[ROW].sort().head(MAX_EXAMPLES).to_numpy()
        return ImportFinding(
            kind.reason, Amounts(rows["session"].n_unique(), 0, 0), tuple(self._row_lines(kind, first))
        )

    def _losses(self, kept: pl.DataFrame) -> Iterator[ImportFinding]:
        if self._reasons:
            of_row = self._reason_of[self._session]
            clicked = of_row[(self._all["click"] == 1).fill_null(False).to_numpy()]
            sessions, impressions, clicks = (
                np.bincount(reasons[reasons != GOOD], minlength=len(self._reasons)).tolist()
                for reasons in (self._reason_of[:-1], of_row, clicked)
            )
            for i, (reason, examples) in enumerate(self._reasons.items()):
                yield ImportFinding(reason, Amounts(sessions[i], impressions[i], clicks[i]), tuple(examples))
        for found in self.repaired:
            if found.reason == WITHOUT_FEATURES:
                clicked_and_gone = kept.select((pl.col("index").is_null() & (pl.col("click") == 1)).sum()).item()
                amounts = Amounts(0, kept["index"].null_count(), int(clicked_and_gone))
                yield ImportFinding(found.reason, amounts, found.examples)


def _first_rows(kept: pl.DataFrame, sessions: Ints) -> dict[int, int]:
    """The number of the first row of each of a few sessions."""
    rows = kept.filter(pl.col("session").is_in(sessions.tolist()))
    return dict(rows.group_by("session").agg(pl.col(ROW).min()).iter_rows())


def _renumbered(kept: pl.DataFrame, good: Bools) -> pl.DataFrame:
    """Sessions by their number among the good ones."""
    numbers = (np.cumsum(good) - 1).astype(np.uint32)
    return kept.with_columns(session=pl.Series(numbers[kept["session"].to_numpy()]))


def moved_up(shown: pl.DataFrame) -> pl.DataFrame:
    """The rows with a document, their positions without gaps, and those on the page, from 0, in `page`."""
    rows = shown.filter(pl.col("index").is_not_null()) if shown["index"].null_count() else shown
    session, page = rows["session"].to_numpy(), rows["position"].to_numpy() - 1
    order = np.argsort((session.astype(np.int64) << 32) | page)
    in_order = session[order]
    starts = np.concatenate([[True], in_order[1:] != in_order[:-1]])[: len(rows)]
    place = np.arange(len(rows))
    position = np.empty(len(rows), np.int32)
    position[order] = place - np.maximum.accumulate(np.where(starts, place, 0)) + 1
    return rows.with_columns(position=pl.Series(position), page=pl.Series(page))
