"""Several logs as one, such as those of four weeks: candidates are united, and a session is counted once."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from cuolr.errors import InputError, problems_in
from cuolr.logs.aggregate import aggregate_chunks
from cuolr.logs.changed_candidates import QueriesLeft, UnitedCandidates, unite
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.columns import IDS, common_columns, common_types, index_dtype
from cuolr.logs.counting import count_chunks
from cuolr.logs.hashed_ids import HASHED_WITH
from cuolr.logs.log_folder import read_click_log, read_column, read_meta, write_click_log
from cuolr.logs.log_meta import MERGED, described, made_from_one
from cuolr.logs.merge_report import MergeReport
from cuolr.logs.reward_scale import weights_of
from cuolr.logs.time_window import ALL_TIME, Timestamps, TimeWindow, is_number, no_timestamps, unit_of, within
from cuolr.progress import Progress, Stages, no_stages
from cuolr.types import Bools, Ints

# What the rows of a log are.
Form: TypeAlias = Literal["of sessions", "counted", "counted by document", "aggregated"]

# What stands in a column after the last document of a list.
AFTER_LAST = {"ranking": -1, "logging_propensity": 1.0, "page_position": -1}


def merge_logs(
    folders: Sequence[Path | str],
    out: Path | str,
    window: TimeWindow = ALL_TIME,
    overwrite: bool = False,
    stages: Stages = no_stages,
) -> MergeReport:
    """Merge logs into a new one, chunk by chunk.

    Queries are the same if their ids are, documents if their query and ids are. Where logs disagree, on the features of
    a document or on a session, the later one in `folders` counts.

    Args:
        folders: The logs, the latest last: all of sessions, all counted, or all aggregated.
        out: The folder to create.
        window: The sessions to keep; 28d counts from the latest session of all logs.
        overwrite: Whether an existing log is replaced.
        stages: Receives the sessions that were read so far.
    """
    paths = [Path(folder) for folder in folders]
    if len({path.resolve() for path in paths}) < max(len(paths), 2):
        raise InputError("expected at least 2 different logs, each given once")
    metas = [read_meta(path) for path in paths]
    _check_alike(paths, metas)
    merge = _Merge.of(paths, metas, window)
    form = form_of(metas[0])
    expired = merge.expired()
    source: dict[str, Any] = {MERGED: [described(path, meta) for path, meta in zip(paths, metas, strict=True)]}
    if key := _key_of(metas[0]):
        source[HASHED_WITH] = key
    if weights := weights_of(metas[0]):
        source["reward"] = weights
    report = MergeReport(
        sessions=sum(meta["sessions"] for meta in metas),
        outside=merge.outside,
        repeated=sum(len(repeated) for repeated in merge.repeated),
        without_id=0 if form != "of sessions" else sum(map(len, merge.kept)) - merge.outside - len(merge.ids),
        differing=merge.differing(stages),
        changed=merge.united.changed,
        left_out=merge.left_out,
        overlapping=() if form == "of sessions" else made_from_one(paths, metas),
        expired=len(expired),
        queries=merge.united.candidates.n_queries - len(expired),
        documents=merge.united.candidates.n_documents - int(merge.united.candidates.sizes[expired].sum()),
    )
    chunks = map(QueriesLeft(expired).of, merge.chunks(merge.kept, stages("merging", merge.rows)))
    write_click_log(
        Path(out),
        _combined(form, chunks),
        {**source, "merge": report.as_dict()},
        overwrite,
    )
    return report


@dataclass(frozen=True)
class _Merge:
    """Logs to be merged.

    Attributes:
        paths: Their folders.
        united: The candidates of all of them.
        columns: The columns of the merged log.
        types: The type of those that are numbers of sessions, such as timestamps.
        left_out: Columns that some logs lack.
        k: Length of the lists of the merged log.
        outside: Number of sessions outside the time window.
        ids: Session ids with their log and row, of sessions in the window that have one.
        kept: For each log, [M] whether a session is in the merged log.
    """

    paths: Sequence[Path]
    united: UnitedCandidates
    columns: tuple[str, ...]
    types: Mapping[str, np.dtype[Any]]
    left_out: tuple[str, ...]
    k: int
    outside: int
    ids: pl.DataFrame
    kept: Sequence[Bools]

    @classmethod
    def of(cls, paths: Sequence[Path], metas: Sequence[Mapping[str, Any]], window: TimeWindow) -> "_Merge":
        examples = [next(read_click_log(path, rows_at_a_time=1, documents=True)) for path in paths]
        columns, left_out = common_columns(examples)
        kept = _in_window(paths, "timestamp" in columns, metas[0]["aggregated"], window)
        outside = sum(_sessions(path, ~of_log) for path, of_log in zip(paths, kept, strict=True))
        ids = pl.concat(
            _ids(number, path, of_log) for number, (path, of_log) in enumerate(zip(paths, kept, strict=True))
        )
        merge = cls(
            paths,
            unite([example.candidates for example in examples], list(map(str, paths))),
            columns,
            common_types(paths, examples, columns),
            left_out,
            max(meta["k"] for meta in metas),
            outside,
            ids,
            kept,
        )
        for of_log, repeated in zip(kept, merge.repeated, strict=True):
            of_log[repeated] = False
        return merge

    @property
    def repeated(self) -> list[npt.NDArray[Any]]:
        """For each log, the rows of sessions that occur again later."""
        again = self.ids.filter(~pl.col("id").is_last_distinct())
        return [again.filter(pl.col("log") == number)["row"].to_numpy() for number in range(len(self.paths))]

    @property
    def rows(self) -> int:
        """The rows of all logs."""
        return sum(map(len, self.kept))

    def chunks(self, rows: Sequence[Bools], progress: Progress) -> Iterator[ClickLog]:
        """These sessions of each log, with the candidates and columns of the merged log."""
        for number, path in enumerate(self.paths):
            start = 0
            for chunk in read_click_log(path, documents=True):
                chosen = np.flatnonzero(rows[number][start : start + len(chunk)])
                start += len(chunk)
                if len(chosen):
                    yield self._converted(number, chunk.select(chosen))
                progress(len(chunk))

    def expired(self) -> Ints:
        """The queries of the merged log all of whose sessions are outside the time window."""
        gone, left = np.zeros((2, self.united.candidates.n_queries), np.bool_)
        if self.outside:
            for path, query, kept in zip(self.paths, self.united.query, self.kept, strict=True):
                of_session = query[_column(path, "query")]
                gone[of_session[~kept]], left[of_session[kept]] = True, True
        return np.flatnonzero(gone & ~left)

    def differing(self, stages: Stages) -> int:
        """The number of sessions that are in several logs with other lists or clicks."""
        several = self.ids.filter(pl.col("id").is_duplicated())
        if not len(several):
            return 0
        rows = [np.zeros(len(kept), np.bool_) for kept in self.kept]
        for number, of_log in enumerate(rows):
            of_log[several.filter(pl.col("log") == number)["row"].to_numpy()] = True
        contents = pl.concat(_contents(chunk) for chunk in self.chunks(rows, stages("comparing", self.rows)))
        return int((contents.group_by("id").agg(pl.col("content").n_unique())["content"] > 1).sum())

    def _converted(self, number: int, log: ClickLog) -> ClickLog:
        candidates, found = self.united.candidates, log.columns
        query = self.united.query[number][log.query].astype(np.int32)
        index = self.united.document[number][log.documents] - candidates.offsets[query][:, None]
        found |= {"query": query, "ranking": np.where(log.where, index, -1).astype(index_dtype(candidates))}
        found.setdefault("page_position", np.where(log.where, np.arange(log.k), -1).astype(np.int32))
        for name in IDS:
            found.setdefault(name, np.full(len(log), "", "<U1"))
        return ClickLog.from_columns(
            candidates, {name: self._to_length(name, found[name]) for name in self.columns}, log.aggregated, log.counted
        )

    def _to_length(self, name: str, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The lists of a column, as long as those of the merged log."""
        if name in self.types:
            return values.astype(self.types[name], copy=False)
        if values.ndim == 1 or values.shape[1] == self.k:
            return values
        rest = np.full((len(values), self.k - values.shape[1]), AFTER_LAST.get(name, 0), values.dtype)
        return np.concatenate([values, rest], axis=1)


def form_of(meta: Mapping[str, Any]) -> Form:
    """What the rows of a log are, by its `meta.json`."""
    if meta["aggregated"]:
        return "aggregated"
    if meta["of_documents"]:
        return "counted by document"
    return "counted" if meta["counted"] else "of sessions"


def _combined(form: Form, chunks: Iterable[ClickLog]) -> Iterable[ClickLog]:
    """The chunks of several logs, with equal rows added up."""
    if form == "of sessions":
        return chunks
    if form == "aggregated":
        return [aggregate_chunks(chunks)]
    return [count_chunks(chunks, "document" if form == "counted by document" else "list")]


def _sessions(path: Path, rows: Bools) -> int:
    """The number of sessions of these rows."""
    count, last_click = read_column(path, "count"), read_column(path, "last_click")
    if last_click is not None:
        rows = rows & (last_click < 0)
    return int(rows.sum() if count is None else count[rows].sum())


def _key_of(meta: Mapping[str, Any]) -> str | None:
    key: str | None = meta.get("source", {}).get(HASHED_WITH)
    return key


def _check_alike(paths: Sequence[Path], metas: Sequence[Mapping[str, Any]]) -> None:
    """Raise if logs are of different forms, their ids hashed in different ways, or their rewards different."""
    for path, meta in zip(paths, metas, strict=True):
        if form_of(meta) != form_of(metas[0]):
            raise InputError(
                f"{paths[0]} is {form_of(metas[0])}, {path} is {form_of(meta)}; merge logs of one form: count a log of "
                "sessions first (cuolr count), or aggregate after merging"
            )
        if _key_of(meta) != _key_of(metas[0]):
            raise InputError(
                f"{paths[0]} and {path}: ids are hashed with different keys, or in one of them only; import both with "
                "the same key"
            )
        if weights_of(meta) != weights_of(metas[0]):
            raise InputError(
                f"{paths[0]} and {path}: rewards have different weights; import both with the same weights"
            )


def _in_window(paths: Sequence[Path], timed: bool, aggregated: bool, window: TimeWindow) -> list[Bools]:
    """Whether each session of each log is in the time window."""
    if not timed:
        if window:
            untimed = next(path for path in paths if read_column(path, "timestamp") is None)
            with problems_in(untimed):
                raise no_timestamps(aggregated)
        return [np.ones(len(_column(path, "query")), np.bool_) for path in paths]
    timestamps = [_column(path, "timestamp") for path in paths]
    _check_times(paths, timestamps)
    bounds = window.bounds(max(timestamp.max() for timestamp in timestamps))
    kept = [within(timestamp, bounds) for timestamp in timestamps]
    if not any(of_log.any() for of_log in kept):
        raise InputError("no session of these logs is in the time window")
    return kept


def _check_times(paths: Sequence[Path], timestamps: Sequence[Timestamps]) -> None:
    """Raise if timestamps cannot be compared."""
    kinds = [unit_of(times.max()) or "other numbers" if is_number(times) else "dates" for times in timestamps]
    for path, kind in zip(paths, kinds, strict=True):
        if kind != kinds[0]:
            raise InputError(f"{path}: expected timestamps in the unit of {paths[0]} ({kinds[0]}), found {kind}")


def _column(path: Path, name: str) -> npt.NDArray[Any]:
    values = read_column(path, name)
    assert values is not None, name
    return values


def _ids(number: int, path: Path, in_window: Bools) -> pl.DataFrame:
    """The session ids of a log, where it has some, with their rows."""
    ids = read_column(path, "session_id")
    texts = pl.Series("id", [] if ids is None else ids[in_window], pl.String)
    rows = pl.Series("row", [] if ids is None else np.flatnonzero(in_window), pl.Int64)
    return pl.DataFrame([texts, rows]).filter(pl.col("id") != "").with_columns(log=pl.lit(number))


def _contents(log: ClickLog) -> pl.DataFrame:
    """A hash of the list and the clicks of each session, by its id."""
    positions = {f"{name}.{k}": getattr(log, name)[:, k] for name in ("ranking", "clicks") for k in range(log.k)}
    content = pl.DataFrame({"query": log.query, **positions}).hash_rows()
    return pl.DataFrame({"id": log.session_id, "content": content})
