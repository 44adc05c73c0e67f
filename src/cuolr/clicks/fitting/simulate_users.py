"""Simulated sessions of fitted users on the documents of their own log: no labels are needed."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from cuolr.clicks.fitting.fit_by_context import FitByContext
from cuolr.clicks.fitting.users_file import SimulatedUsers
from cuolr.config import Range, check_arguments
from cuolr.errors import InputError
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.columns import index_dtype
from cuolr.logs.log_forms import require_single_sessions
from cuolr.logs.page_positions import at_page_positions
from cuolr.logs.session_files import one_each
from cuolr.policies.policy import RankingPolicy
from cuolr.random import DEFAULT_SEED
from cuolr.types import IntegerArray, Ints

# Sessions of a block; each block has its own random numbers.
SESSIONS_PER_BLOCK = 1 << 15


@dataclass(frozen=True)
class UserSimulation:
    """The parameters of a log that fitted users make.

    Attributes:
        log: Sessions are drawn from it, with replacement: their queries and, without a policy, their lists.
        users: Fitted to this log, or to one with the same documents.
        sessions: Number of sessions.
        policy: Ranks the documents of the drawn queries; None = the logged lists are shown.
        k: Length of the policy's lists.
        seed: 0 or more.
    """

    log: ClickLog
    users: SimulatedUsers
    sessions: int
    policy: RankingPolicy | None = None
    k: int = 10
    seed: int = DEFAULT_SEED

    def __post_init__(self) -> None:
        check_arguments(sessions=(self.sessions, Range(1)), k=(self.k, Range(1)), seed=(self.seed, Range(0)))

    def blocks(self, progress: Callable[[int], None] | None = None) -> Iterator[ClickLog]:
        """The log in blocks, in order."""
        lists = self._lists()
        for number, start in enumerate(range(0, self.sessions, SESSIONS_PER_BLOCK)):
            rng = np.random.default_rng([self.seed, number])
            size = min(SESSIONS_PER_BLOCK, self.sessions - start)
            shown = lists.select(rng.integers(len(lists), size=size))
            yield replace(shown, clicks=self._clicks(shown, rng), count=one_each(size))
            if progress is not None:
                progress(size)

    def expected_clicks(self) -> float:
        """The exact mean number of clicks per session."""
        lists, total = self._lists(), 0.0
        for start in range(0, len(lists), SESSIONS_PER_BLOCK):
            page = at_page_positions(lists.select(slice(start, start + SESSIONS_PER_BLOCK)))
            for model, values, rows in self.users.by_level(page):
                documents = self._documents(page)[rows]
                total += float(model.marginal(values, documents)[documents >= 0].sum())
        return total / len(lists)

    def _lists(self) -> ClickLog:
        """The rows that sessions are drawn from, without clicks."""
        log = self.log
        require_single_sessions(log, "simulating users")
        ranking, page_position = log.ranking, log.page_position
        if self.policy is not None:
            ranked: IntegerArray = self.policy.rank(log.candidates, self.k).astype(index_dtype(log.candidates))
            ranking, page_position = ranked[log.query], None
        no_clicks = np.zeros(ranking.shape, np.uint8)
        context = log.context if isinstance(self.users.model, FitByContext) else {}
        lists = ClickLog(
            log.candidates, log.query, ranking, no_clicks, log.count, page_position=page_position, context=context
        )
        k = int(np.max(np.flatnonzero(at_page_positions(lists).where.any(axis=0)), initial=0)) + 1
        if k > self.users.model.k:
            raise InputError(f"the users were fitted to lists of {self.users.model.k} positions, found a list of {k}")
        return lists

    def _documents(self, page: ClickLog) -> Ints:
        """[M, K] the documents by position on the page; −1 = nothing shown."""
        return np.where(page.where, page.documents, -1)[:, : self.users.model.k]

    def _clicks(self, shown: ClickLog, rng: np.random.Generator) -> npt.NDArray[np.uint8]:
        page = at_page_positions(shown)
        documents = self._documents(page)
        uniforms = rng.random(documents.shape)
        clicked = np.zeros(page.where.shape, np.bool_)
        for model, values, rows in self.users.by_level(page):
            clicked[rows, : documents.shape[1]] = model.sample(values, documents[rows], uniforms[rows])
        clicks = np.zeros(shown.ranking.shape, np.uint8)
        # Both have the documents of a row in the same order.
        clicks[shown.where] = clicked[page.where]
        return clicks
