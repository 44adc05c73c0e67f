"""A log without the queries all of whose sessions were left out: their text can be personal, too."""

from dataclasses import replace

import numpy as np

from cuolr.logs.clicklog import ClickLog
from cuolr.types import Candidates, Ints


class QueriesLeft:
    """All queries of a log but some, of which no session is left."""

    def __init__(self, orphans: Ints) -> None:
        """Take note of the queries without sessions.

        Args:
            orphans: Their numbers.
        """
        self._orphans = orphans
        self._candidates: Candidates | None = None

    def of(self, log: ClickLog) -> ClickLog:
        """A chunk of the log over the other queries."""
        if not len(self._orphans):
            return log
        if self._candidates is None:
            queries = np.setdiff1d(np.arange(log.candidates.n_queries), self._orphans)
            self._candidates = log.candidates.select(queries)
            self._number = np.zeros(log.candidates.n_queries, np.int32)
            self._number[queries] = np.arange(len(queries))
        return replace(log, candidates=self._candidates, query=self._number[log.query])
