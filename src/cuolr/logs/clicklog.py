"""The click log: what was shown and clicked, all that a learner may learn from."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from cuolr.errors import InputError
from cuolr.types import Bools, Candidates, Floats, IntegerArray, Ints, Strings

# What a log counts, and learners maximise.
Outcome = Literal["clicks", "reward"]
# Prefix of context columns, where columns of all kinds are together.
CONTEXT = "context."


@dataclass(frozen=True)
class ClickLog:
    """What was shown and clicked: all that a learner may learn from. It has no field for labels.

    Columns that a source does not have are None and take no memory. Position bias goes by `page_position`. Learners
    maximise `rewards`; examination is estimated from clicks.

    Attributes:
        candidates: The documents of each query.
        query: [M] the query of each row, an index into the candidates.
        ranking: [M, K] the candidate index of the document at each position, 0 = the query's first document; −1 =
            nothing shown.
        clicks: [M, K] 0 or 1 in uint8; once aggregated, the mean (weighted) click of the row's sessions in float64.
        count: [M] the number of sessions that a row stands for, 1 unless counted or aggregated.
        logging_propensity: [M, K] the logging policy's probability of each shown document given those above it.
        examination: [M, K] whether the user examined the document; once aggregated, the mean.
        timestamp: [M] as in the source: a number, or a date and time.
        reward: [M, K] in float32, such as purchases or dwell time, 0 or more, and above 0 only where there is a click;
            once aggregated, the mean in float64. None = the click is the reward.
        page_position: [M, K] the position on the page as the user saw it, from 0, with gaps and later pages; −1 =
            nothing shown. None = the index in the list.
        randomised: [M] whether the list was shown in uniformly random order; None = not known.
        session_id: [M] as in the source, as text; "" = unknown. For merging and deleting, never for learning.
        user_id: [M] the same for the user.
        last_click: [M] for rows that count single documents, see `counting`: the position on the page of the
            last click above the document, from 1; 0 = no click above it, −1 = nothing is shown above it.
        context: [M] each: columns that describe the session, such as device or layout, as texts or numbers.
        aggregated: Whether rows stand for several sessions that were shown the same list, with their mean clicks.
        counted: Whether rows stand for several sessions with the same list and the same clicks; see `counting`. Or,
            with `last_click`, for several sessions with the same document at a position.
    """

    candidates: Candidates
    query: npt.NDArray[np.int32]
    ranking: IntegerArray
    clicks: npt.NDArray[np.uint8 | np.float64]
    count: Ints
    logging_propensity: Floats | None = None
    examination: npt.NDArray[np.uint8 | np.float64] | None = None
    timestamp: npt.NDArray[Any] | None = None
    reward: npt.NDArray[np.float32 | np.float64] | None = None
    page_position: npt.NDArray[np.int32] | None = None
    randomised: Bools | None = None
    session_id: Strings | None = None
    user_id: Strings | None = None
    last_click: npt.NDArray[np.int16] | None = None
    context: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    aggregated: bool = False
    counted: bool = False

    def __post_init__(self) -> None:
        rows, k = self.ranking.shape
        assert self.query.shape == self.count.shape == (rows,), (self.query.shape, self.count.shape, rows)
        assert not self.of_sessions or (self.count == 1).all(), "a raw row is one session"
        assert not (self.aggregated and self.counted)
        assert not self.of_documents or (self.counted and k == 1 and self.page_position is not None)
        assert self.clicks.shape == (rows, k), (self.clicks.shape, rows, k)
        assert self.clicks.dtype == (np.float64 if self.aggregated else np.uint8), self.clicks.dtype
        for by_position in (self.logging_propensity, self.examination, self.reward, self.page_position):
            assert by_position is None or by_position.shape == (rows, k), (by_position.shape, rows, k)
        for by_session in (self.timestamp, self.randomised, self.session_id, self.user_id, self.last_click):
            assert by_session is None or by_session.shape == (rows,), (by_session.shape, rows)
        assert all(values.shape == (rows,) for values in self.context.values())

    def __len__(self) -> int:
        """M, the number of rows."""
        return len(self.query)

    @property
    def k(self) -> int:
        """K, the number of positions of a list."""
        return int(self.ranking.shape[1])

    @property
    def sessions(self) -> int:
        """The number of sessions that the rows stand for together."""
        return int(self.session_count.sum())

    @property
    def session_count(self) -> Ints:
        """[M] the number of sessions, each of which is counted once: of documents, with the first of its list."""
        return self.count if self.last_click is None else np.where(self.last_click < 0, self.count, 0)

    @property
    def of_documents(self) -> bool:
        """Whether each row is one document at a position, so that the lists are not known."""
        return self.last_click is not None

    @property
    def of_sessions(self) -> bool:
        """Whether each row is one session."""
        return not (self.aggregated or self.counted)

    @property
    def where(self) -> Bools:
        """[M, K] true = a document was shown."""
        return self.ranking >= 0

    @property
    def rewards(self) -> npt.NDArray[Any]:
        """[M, K] what is to be maximised: the reward, or the click where the log has none."""
        return self.clicks if self.reward is None else self.reward

    @property
    def outcome(self) -> Outcome:
        """What `rewards` are, for messages."""
        return "clicks" if self.reward is None else "reward"

    @property
    def documents(self) -> Ints:
        """[M, K] the row of the candidates' document at each position; any row where nothing was shown."""
        return np.where(self.where, self.candidates.offsets[self.query, None] + self.ranking, 0)

    @property
    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays of M rows by name; the context column `device` is `context.device`."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        context = {f"{CONTEXT}{name}": column for name, column in self.context.items()}
        return {name: value for name, value in values.items() if isinstance(value, np.ndarray)} | context

    @classmethod
    def from_columns(
        cls, candidates: Candidates, columns: Mapping[str, npt.NDArray[Any]], aggregated: bool, counted: bool = False
    ) -> "ClickLog":
        """A log with these columns, named as in `columns`."""
        context = {name.removeprefix(CONTEXT): values for name, values in columns.items() if name.startswith(CONTEXT)}
        others: dict[str, Any] = {name: values for name, values in columns.items() if not name.startswith(CONTEXT)}
        return cls(candidates, context=context, aggregated=aggregated, counted=counted, **others)

    @classmethod
    def from_frame(cls, table: Any, features: Any, k: int | None = None, strict: bool = False) -> "ClickLog":
        """A log from data frames of polars or pandas; see `cuolr.import_log`, which has more options.

        What is repaired or dropped is counted in a warning.

        Args:
            table: A row per shown document: query_id, session_id, position (from 1), doc_id, click (0 or 1) and, where
                known, logging_propensity, examination, timestamp, reward and randomised.
            features: A row per document: query_id, doc_id and a column per feature; or `FeatureTables`.
            k: Length of the lists; longer ones are truncated. None = the longest.
            strict: Whether every problem is an error.
        """
        from cuolr.data.feature_tables import FeatureTables
        from cuolr.logs.importing.import_options import ImportOptions
        from cuolr.logs.importing.table import read_log_table

        tables = features if isinstance(features, FeatureTables) else FeatureTables(features)
        log, report = read_log_table(table, tables, ImportOptions(k=k, strict=strict))
        report.warn()
        return log

    def to_frame(self) -> pl.DataFrame:
        """A row per shown document, as `from_frame` takes it, with row numbers as session_id where the log has no ids.

        It has all columns of the log, with positions from 1. Documents without ids have their number within the query,
        from 1.
        A counted log has a `count`, an aggregated log mean clicks as well, which `from_frame` does not accept.
        """
        row, position = np.nonzero(self.where)
        query, index = self.query[row], self.ranking[row, position]
        frame: dict[str, npt.NDArray[Any]] = {
            "query_id": self.candidates.query_ids[query],
            "session_id": row,
            "position": position + 1,
            "doc_id": self.candidates.document_names[self.candidates.offsets[query] + index],
            "click": self.clicks[row, position],
        }
        for name, values in self.columns.items():
            if name not in ("query", "ranking", "clicks") and (name != "count" or not self.of_sessions):
                frame[name] = values[row] if values.ndim == 1 else values[row, position]
        if self.page_position is not None:
            frame["page_position"] = frame["page_position"] + 1
        return pl.DataFrame(frame)

    def select(self, rows: slice | IntegerArray) -> "ClickLog":
        """The log of these rows, in this order; a slice copies nothing."""
        columns = {name: values[rows] for name, values in self.columns.items()}
        return ClickLog.from_columns(self.candidates, columns, self.aggregated, self.counted)


# Why a log that counts documents cannot be used.
LISTS_UNKNOWN = (
    "this log counts documents (`cuolr count --by document`), and this needs lists; use the log of sessions, or count "
    "it with --by list"
)


def require_sessions(log: ClickLog, what: str) -> None:
    """Raise if a log is aggregated; for methods that need the clicks of each session."""
    if log.aggregated:
        raise InputError(
            f"{what} needs the clicks of each session, but the rows of this log are means over several sessions; use "
            "the log from before aggregation"
        )


def require_single_sessions(log: ClickLog, what: str) -> None:
    """Raise if a row may stand for several sessions."""
    require_sessions(log, what)
    if log.counted:
        raise InputError(f"{what} needs sessions one by one, but this log is counted; use the log that was counted")


def require_lists(log: ClickLog, what: str) -> None:
    """Raise if a log counts documents, so that its lists are not known."""
    if log.of_documents:
        raise InputError(f"{what}: {LISTS_UNKNOWN}")
