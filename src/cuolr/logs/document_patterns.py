"""What click models are fitted to, of a log that counts documents: enough for those that need the last click only."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt

from cuolr.errors import InputError
from cuolr.logs.changed_candidates import MANY_QUERIES
from cuolr.logs.click_patterns import FOLDS, ClickPatterns, days_of
from cuolr.logs.clicklog import LISTS_UNKNOWN, ClickLog
from cuolr.logs.last_clicks import LastClicks, PatternCells, summed
from cuolr.logs.log_folder import load_click_log, read_meta
from cuolr.logs.page_positions import page_width
from cuolr.logs.session_files import ROWS_AT_A_TIME
from cuolr.logs.time_window import ALL_TIME, TimeWindow
from cuolr.progress import Stages, no_stages
from cuolr.random import DEFAULT_SEED
from cuolr.types import Bools, Doubles, Ints

NONE: Ints = np.empty(0, np.int64)
# Folds that are told apart if the log has many queries: what resampling is over are then queries. The last fold stands
# for all others.
FOLDS_OF_MANY_QUERIES = 3


@dataclass(frozen=True)
class DocumentPatterns(ClickPatterns):
    """A row for each document, position, last click above and click; columns have one position, K is that of the page.

    The clicks of a document at a position are dealt to the folds at random, not by session. Given the last click above,
    models that can be fitted here take them as independent.

    Attributes:
        position: [M] from 0.
        last_click: [M] as in `ClickLog`.
        positions: K.
    """

    of_documents: ClassVar[bool] = True
    position: Ints = field(default_factory=lambda: NONE)
    last_click: Ints = field(default_factory=lambda: NONE)
    positions: int = 1

    @classmethod
    def of_log(
        cls, log: ClickLog, seed: int = DEFAULT_SEED, by: Sequence[Literal["context", "day"]] = ()
    ) -> "DocumentPatterns":
        """The rows of a log that counts documents, in folds.

        Args:
            log: Counts documents.
            seed: Decides the folds.
            by: Rows have their context, or their day, to select them afterwards.
        """
        assert log.page_position is not None
        assert log.last_click is not None
        few = len(np.unique(log.query)) < MANY_QUERIES
        row, fold, count = _dealt(log.count, FOLDS if few else FOLDS_OF_MANY_QUERIES, seed)
        pairs, documents = np.unique(log.documents[:, 0], return_inverse=True)
        day = days_of(log) if "day" in by else None
        return cls(
            candidates=log.candidates,
            pairs=pairs,
            query=log.query[row].astype(np.int64),
            documents=documents[row][:, None],
            clicks=log.clicks[row] > 0,
            count=count.astype(np.float64),
            fold=fold,
            context={name: values[row] for name, values in log.context.items()} if "context" in by else {},
            day=None if day is None else day[row],
            position=log.page_position[row, 0].astype(np.int64),
            last_click=log.last_click[row].astype(np.int64),
            positions=page_width(log),
        )

    @property
    def k(self) -> int:
        """K, the number of positions."""
        return self.positions

    @property
    def session_count(self) -> Doubles:
        """[M] number of sessions, each with its first document."""
        return np.where(self.last_click < 0, self.count, 0.0)

    @property
    def shown(self) -> Doubles:
        """[K] number of sessions that show a document at each position."""
        return np.bincount(self.position, weights=self.count, minlength=self.k).astype(np.float64)

    def select(self, rows: Bools) -> Self:
        """These rows only; the numbers of pairs and units stay."""
        selected = super().select(rows)
        kept = replace(selected, position=self.position[rows], last_click=self.last_click[rows])
        kept.__dict__["unit"] = selected.unit
        return kept

    def as_lists(self, rows: slice | Ints) -> tuple[Ints, Bools]:
        """[R, K] lists of one document each, with a click on it or not, and the last click above."""
        position, last = self.position[rows], self.last_click[rows]
        documents = np.full((len(position), self.k), -1)
        clicks = np.zeros(documents.shape, np.bool_)
        number = np.arange(len(position))
        documents[number, position] = self.documents[rows, 0]
        clicks[number, position] = self.clicks[rows, 0]
        after = np.flatnonzero(last > 0)
        clicks[after, last[after] - 1] = True
        return documents, clicks

    @cached_property
    def cells(self) -> PatternCells:
        """The counts of (document, position, last click above)."""
        sizes = (len(self.pairs), self.k, self.k + 1)
        place = np.ravel_multi_index((self.documents[:, 0], self.position, np.maximum(self.last_click, 0)), sizes)
        key, sums = summed(
            self.unit * int(np.prod(sizes)) + place, impressions=self.count, clicks=self.count * self.clicks[:, 0]
        )
        return PatternCells.of_keys(key, sums, sizes)

    @property
    def last_clicks(self) -> LastClicks:
        """These are of lists."""
        raise InputError(f"click models of users who examine from the top: {LISTS_UNKNOWN}")


def patterns_of(
    log: ClickLog | Path,
    seed: int = DEFAULT_SEED,
    window: TimeWindow = ALL_TIME,
    stages: Stages = no_stages,
    by: Sequence[Literal["context", "day"]] = (),
) -> ClickPatterns:
    """The counts that click models are fitted to, by list or by document as the log is; see `ClickPatterns.of`."""
    if isinstance(log, Path) and read_meta(log)["of_documents"]:
        log = load_click_log(log, window, ids=False, stages=stages, documents=True)
    if isinstance(log, ClickLog) and log.of_documents:
        return DocumentPatterns.of_log(log, seed, by)
    return ClickPatterns.of(log, seed, window, stages, by)


def _dealt(count: Ints, folds: int, seed: int) -> tuple[Ints, Ints, Ints]:
    """The counts of rows, dealt to folds at random: [n] the row, the fold and the number of each part."""
    share = np.full(folds, 1 / FOLDS)
    share[-1] = 1 - share[:-1].sum()

    def parts() -> Iterator[tuple[npt.NDArray[Any], ...]]:
        for start in range(0, len(count), ROWS_AT_A_TIME):
            dealt = np.random.default_rng((seed, start)).multinomial(count[start : start + ROWS_AT_A_TIME], share)
            row, fold = np.nonzero(dealt)
            yield row + start, fold, dealt[row, fold]

    row, fold, number = (np.concatenate(arrays) for arrays in zip(*parts(), strict=True))
    return row, fold, number
