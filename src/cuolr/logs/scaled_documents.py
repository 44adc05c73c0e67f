"""The documents that a log shows, with scaled features."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

from cuolr.data.normalise import Normaliser
from cuolr.errors import InputError
from cuolr.logs.clicklog import ClickLog
from cuolr.types import Bools, Candidates, Floats, Ints

# Rows of the log that are looked at together.
ROWS_AT_A_TIME = 1 << 17


@dataclass(frozen=True)
class ScaledDocuments:
    """The n documents that a log shows.

    Attributes:
        candidates: All documents.
        rows: [n] the rows of those shown, ascending.
        documents: [M, K] the row in `features` at each position of each row of the log; n where nothing was shown.
        normaliser: The normaliser that scales the features.
    """

    candidates: Candidates
    rows: Ints
    documents: npt.NDArray[np.int32]
    normaliser: Normaliser

    @classmethod
    def of(cls, log: ClickLog, normaliser: Normaliser) -> Self:
        """Scale the shown documents of a log, raw or aggregated.

        Args:
            log: Shows at least one document.
            normaliser: Fitted.
        """
        parts = [slice(start, start + ROWS_AT_A_TIME) for start in range(0, len(log), ROWS_AT_A_TIME)]
        used = np.zeros(log.candidates.n_documents, np.bool_)
        for shown in map(log.select, parts):
            used[shown.documents[shown.where]] = True
        if not used.any():
            raise InputError("the log shows no documents in any session")
        rows, place = np.flatnonzero(used), (np.cumsum(used) - 1).astype(np.int32)
        index = np.full(log.ranking.shape, len(rows), np.int32)
        for part in parts:
            shown = log.select(part)
            index[part][shown.where] = place[shown.documents[shown.where]]
        return cls(log.candidates, rows, index, normaliser)

    @cached_property
    def features(self) -> Floats:
        """[n + 1, F + M] scaled, with M indicators of missing values; the last row, for padding, is 0."""
        return scaled_features(self.candidates, self.normaliser, self._used)

    def parts(self) -> Iterator[Floats]:
        """The rows of `features`, some at a time, none of which are kept."""
        for _, scaled in self.normaliser.in_parts(self.candidates, self._used):
            yield scaled
        yield np.zeros((1, self.candidates.n_features + self.normaliser.n_indicators), np.float32)

    @property
    def _used(self) -> Bools:
        """[n_documents] whether each was shown."""
        used = np.zeros(self.candidates.n_documents, np.bool_)
        used[self.rows] = True
        return used


def scaled_features(candidates: Candidates, normaliser: Normaliser, used: Bools) -> Floats:
    """[number used + 1, F + M] the scaled features of the used documents, then a row of zeros.

    Args:
        candidates: All documents.
        normaliser: A fitted normaliser.
        used: [n_documents] the documents to scale.
    """
    features = np.zeros((int(used.sum()) + 1, candidates.n_features + normaliser.n_indicators), np.float32)
    end = 0
    for _, scaled in normaliser.in_parts(candidates, used):
        features[end : end + len(scaled)] = scaled
        end += len(scaled)
    return features
