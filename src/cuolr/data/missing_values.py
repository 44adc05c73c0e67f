"""Missing feature values: the median and an indicator for networks, NaN for trees."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from cuolr.types import Bools, Floats, Ints

# The median is that of all documents, or of about this many, evenly spaced, if there are more.
MAX_MEDIAN_ROWS = 200_000
MEDIAN_COLUMNS_AT_A_TIME = 8


@dataclass(frozen=True)
class MissingValues:
    """What stands for a missing value, fitted on training documents.

    A missing value becomes the feature's median. A feature with missing values in training gets one more column, its
    indicator: 1 where the value is missing, 0 elsewhere. The indicators follow the F features, in their order. Trees do
    not take the medians but NaN, see `natively`. A feature that is missing at ranking time only is the median for both.

    Attributes:
        median: [F] of the training documents that have a value.
        indicated: [M] the features with an indicator, ascending.

    >>> rule = MissingValues.fit(np.array([[1.0, 5.0], [np.nan, 7.0], [3.0, 9.0]], np.float32))
    >>> rule.median.tolist(), rule.indicated.tolist()
    ([2.0, 7.0], [0])
    """

    median: Floats
    indicated: Ints

    @classmethod
    def fit(cls, features: Floats) -> Self:
        """The rule for these documents [n, F]; each feature has at least one value."""
        missing = np.isnan(np.min(features, axis=0))
        sample = features[:: -(-len(features) // MAX_MEDIAN_ROWS)]
        # Some columns at a time, so that not the whole sample is copied.
        firsts = range(0, sample.shape[1], MEDIAN_COLUMNS_AT_A_TIME)
        blocks = (sample[:, first : first + MEDIAN_COLUMNS_AT_A_TIME].T for first in firsts)
        median = np.array([_median(column) for block in blocks for column in np.ascontiguousarray(block)], np.float32)
        for j in np.flatnonzero(np.isnan(median)):
            median[j] = _median(features[:, j])
        return cls(median, np.flatnonzero(missing))

    @property
    def n_indicators(self) -> int:
        """M, the number of indicators."""
        return len(self.indicated)

    def filled(self, features: Floats, where: Bools) -> Floats:
        """A copy of documents [n, F] with the medians at the missing values, which `where` [n, F] marks."""
        return np.where(where, self.median, features)

    def with_indicators(self, features: Floats, where: Bools) -> Floats:
        """[n, F + M] the features without missing values [n, F], and the indicators."""
        if not self.n_indicators:
            return features
        return np.concatenate([features, where[:, self.indicated].astype(np.float32)], axis=1)

    def natively(self, features: Floats) -> Floats:
        """[n, F] for trees: NaN at the values that the indicators of [n, F + M] mark."""
        if not self.n_indicators:
            return features
        n_features = features.shape[1] - self.n_indicators
        values = features[:, :n_features].copy()
        values[:, self.indicated] = np.where(
            features[:, n_features:] > 0, np.float32(np.nan), values[:, self.indicated]
        )
        return values

    def columns_natively(self, features: Floats, columns: slice, rows: Ints | slice) -> Floats:
        """[n, number of columns] these rows and columns of `natively(features)`, without a copy of the others."""
        values = np.array(features[:, columns][rows])
        n_features = features.shape[1] - self.n_indicators
        for place, feature in enumerate(self.indicated):
            if columns.start <= feature < columns.stop:
                values[features[rows, n_features + place] > 0, feature - columns.start] = np.nan
        return values

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Medians and the features with an indicator, to be saved."""
        return {"missing.median": self.median, "missing.indicated": self.indicated}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Self | None:
        """The rule that `arrays` were taken from; None if there was none."""
        if "missing.median" not in arrays:
            return None
        median, indicated = arrays["missing.median"], arrays["missing.indicated"]
        if median.ndim != 1 or median.dtype != np.float32 or not np.isfinite(median).all():
            raise ValueError(f"missing.median: expected finite float32 numbers, found {median.dtype} {median.shape}")
        if indicated.ndim != 1 or indicated.dtype != np.int64 or (np.diff(indicated, prepend=-1) < 1).any():
            raise ValueError("missing.indicated: expected numbers of features, ascending")
        if len(indicated) and indicated[-1] >= len(median):
            raise ValueError(f"missing.indicated: expected numbers below {len(median)}, found {indicated[-1]}")
        return cls(median, indicated)


def _median(values: Floats) -> float:
    """The median of the values that are not NaN; NaN if there is none."""
    known = values[~np.isnan(values)]
    return float(np.median(known)) if len(known) else float("nan")
