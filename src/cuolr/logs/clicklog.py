"""What was shown, and what was clicked: all that a learner may learn from."""

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cuolr.types import Bools, Candidates, Floats, IntegerArray, Ints


@dataclass(frozen=True)
class ClickLog:
    """What was shown, and what was clicked: all that a learner may learn from. It has no field for labels.

    Attributes:
        candidates: The documents of each query.
        query: [M] the query of each row, an index into the candidates.
        ranking: [M, K] the slot of the document at each position, 0 = the query's first row; −1 = nothing shown.
        clicks: [M, K] 0 or 1 in uint8; once aggregated, the mean (weighted) click of the row's sessions in float64.
        count: [M] how many sessions a row stands for, 1 each unless aggregated.
        logging_propensity: [M, K] where known, the logger's probability of each shown document given those above.
        examination: [M, K] where known, whether the user looked; the mean once aggregated.
        timestamp: [M] where known, as in the source: a number or a date and time.
        aggregated: Whether rows stand for several sessions that were shown the same list.
    """

    candidates: Candidates
    query: npt.NDArray[np.int32]
    ranking: IntegerArray
    clicks: npt.NDArray[np.uint8 | np.float64]
    count: Ints
    logging_propensity: Floats | None = None
    examination: npt.NDArray[np.uint8 | np.float64] | None = None
    timestamp: npt.NDArray[Any] | None = None
    aggregated: bool = False

    def __post_init__(self) -> None:
        rows, k = self.ranking.shape
        assert self.query.shape == self.count.shape == (rows,), (self.query.shape, self.count.shape, rows)
        assert self.aggregated or (self.count == 1).all(), "a raw row is one session"
        assert self.clicks.shape == (rows, k), (self.clicks.shape, rows, k)
        assert self.clicks.dtype == (np.float64 if self.aggregated else np.uint8), self.clicks.dtype
        assert self.logging_propensity is None or self.logging_propensity.shape == (rows, k)
        assert self.examination is None or self.examination.shape == (rows, k)
        assert self.timestamp is None or self.timestamp.shape == (rows,)

    def __len__(self) -> int:
        """M, the number of rows."""
        return len(self.query)

    @property
    def k(self) -> int:
        """K, the number of positions of a list."""
        return int(self.ranking.shape[1])

    @property
    def sessions(self) -> int:
        """How many sessions the rows stand for together."""
        return int(self.count.sum())

    @property
    def where(self) -> Bools:
        """[M, K] true = a document was shown."""
        return self.ranking >= 0

    @property
    def documents(self) -> Ints:
        """[M, K] the row of the candidates' document at each position; any row where nothing was shown."""
        return np.where(self.where, self.candidates.offsets[self.query, None] + self.ranking, 0)

    @property
    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """What there is for each row, by name: each array has M rows."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}

    def select(self, rows: slice | IntegerArray) -> "ClickLog":
        """Just these rows, in this order; a slice copies nothing."""
        columns: dict[str, Any] = {name: values[rows] for name, values in self.columns.items()}
        return replace(self, **columns)
