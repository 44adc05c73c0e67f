"""Simulated click logs: queries drawn at random, ranked by a logging policy, with clicks from a click model.

The random numbers of a session depend only on the seed and the session's number, so the same seed gives the same log,
byte for byte, whatever the size of the blocks and the number of threads.
"""

import itertools
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from cuolr.clicks.click_model import ClickModel, click_model_table, relevance_of
from cuolr.clicks.simulated_context import DrawnContexts, SimulatedContext, in_context
from cuolr.config import Range, check_arguments
from cuolr.errors import InputError
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.columns import index_dtype
from cuolr.logs.log_folder import concatenate, write_click_log
from cuolr.logs.session_files import one_each
from cuolr.policies.plackett_luce import StochasticLogger, sample_plackett_luce
from cuolr.policies.policy import RankingPolicy
from cuolr.policies.random_policy import UniformLogger, sample_uniformly
from cuolr.progress import Progress
from cuolr.random import DEFAULT_SEED
from cuolr.types import Bools, Floats, IntegerArray, RankingDataset

# Random numbers per block: few enough for a core's cache, enough to amortise the calls.
DRAWS_PER_BLOCK = 1 << 19


class Purpose(IntEnum):
    """The use of random numbers; each purpose has its own stream."""

    QUERY = 0
    RANKING = 1
    CLICKS = 2
    CONTEXT = 3


class Shown(NamedTuple):
    """The lists of a block of sessions, [B, K] each."""

    ranking: IntegerArray
    relevance: Floats  # 0 where nothing is shown
    logging_propensity: Floats | None = None


# Returns the lists of the sessions with these numbers and queries [B].
Lists: TypeAlias = Callable[[range, IntegerArray], Shown]


@dataclass(frozen=True)
class Simulation:
    """The parameters of a simulated log.

    Attributes:
        dataset: Queries are drawn from it uniformly; its labels decide the clicks, and are not in the log.
        policy: Shows the same list of a query in each session or, if stochastic, a new one; then the log has
            `logging_propensity`.
        click_model: The click model.
        sessions: Number of sessions.
        k: Length of the lists.
        seed: 0 or more.
        keep_examination: Whether the log records examination, which real logs do not have.
        contexts: Columns of context, on which the severity of position bias may depend.
    """

    dataset: RankingDataset
    policy: RankingPolicy | StochasticLogger | UniformLogger
    click_model: ClickModel
    sessions: int
    k: int = 10
    seed: int = DEFAULT_SEED
    keep_examination: bool = False
    contexts: tuple[SimulatedContext, ...] = ()

    def __post_init__(self) -> None:
        check_arguments(sessions=(self.sessions, Range(1)), k=(self.k, Range(1)), seed=(self.seed, Range(0)))
        if not self.dataset.candidates.n_documents:
            raise InputError("data set: expected at least one document to show, found none")
        if len({context.name for context in self.contexts}) < len(self.contexts):
            raise InputError("context: expected each column once")
        for severity in itertools.chain.from_iterable(context.severities for context in self.contexts):
            in_context(self.click_model, severity)  # raises if the click model has no severity

    def blocks(
        self, sessions_per_block: int | None = None, threads: int = 2, progress: Progress | None = None
    ) -> Iterator[ClickLog]:
        """The log in blocks, in order; only a few are in memory at a time.

        Args:
            sessions_per_block: None = a fast size; the log does not depend on it.
            threads: Number of blocks that are simulated at a time.
            progress: Called with the number of sessions of each block.
        """
        size = sessions_per_block or max(1, DRAWS_PER_BLOCK // self._draws_per_session)
        ranges = (range(start, min(start + size, self.sessions)) for start in range(0, self.sessions, size))
        lists = self._lists()
        with ThreadPoolExecutor(threads) as pool:
            under_way: deque[Future[ClickLog]] = deque()
            for numbers in ranges:
                under_way.append(pool.submit(self._block, numbers, lists))
                if len(under_way) > 2 * threads:
                    yield _next_of(under_way, progress)
            while under_way:
                yield _next_of(under_way, progress)

    def log(self, progress: Progress | None = None) -> ClickLog:
        """The log in memory."""
        return concatenate(self.blocks(progress=progress), self.sessions)

    def _block(self, numbers: range, lists: Lists) -> ClickLog:
        """The sessions with these numbers."""
        candidates = self.dataset.candidates
        chance = self._uniforms(Purpose.QUERY, numbers, 1, np.float64)[:, 0]
        query = (chance * candidates.n_queries).astype(np.int32)
        ranking, relevance, logging_propensity = lists(numbers, query)
        uniforms = self._uniforms(Purpose.CLICKS, numbers, 2 * self.k, np.float32).reshape(-1, self.k, 2)
        drawn = DrawnContexts.of(
            self.contexts, self._uniforms(Purpose.CONTEXT, numbers, len(self.contexts), np.float64)
        )
        clicks, examination = self._respond(drawn, relevance, ranking >= 0, uniforms)
        return ClickLog(
            candidates=candidates,
            query=query,
            ranking=ranking,
            clicks=clicks.view(np.uint8),
            count=one_each(len(query)),
            logging_propensity=logging_propensity,
            examination=examination.view(np.uint8) if self.keep_examination else None,
            context=drawn.columns,
        )

    def _respond(self, drawn: DrawnContexts, relevance: Floats, where: Bools, uniforms: Floats) -> tuple[Bools, Bools]:
        """Clicks and examination of the sessions, each by the click model of its context."""
        if not self.contexts:
            return self.click_model.respond(relevance, where, uniforms)
        clicks, examination = np.zeros(where.shape, np.bool_), np.zeros(where.shape, np.bool_)
        for severity in np.unique(drawn.severity).tolist():
            rows = drawn.severity == severity
            model = in_context(self.click_model, severity)
            clicks[rows], examination[rows] = model.respond(relevance[rows], where[rows], uniforms[rows])
        return clicks, examination

    @property
    def _draws_per_session(self) -> int:
        longest = int(self.dataset.candidates.sizes.max())
        return 2 * self.k + (longest if isinstance(self.policy, StochasticLogger) else 0)

    def _uniforms(
        self, purpose: Purpose, numbers: range, draws: int, dtype: type[np.float32 | np.float64]
    ) -> npt.NDArray[Any]:
        """[B, draws] from [0, 1) for the sessions with these numbers.

        Each session has its own part of the purpose's stream, and PCG64 can jump to its start.
        """
        numbers_per_step = 8 // np.dtype(dtype).itemsize
        steps = -(-draws // numbers_per_step)
        stream = np.random.PCG64DXSM(np.random.SeedSequence(self.seed, spawn_key=(purpose,)))
        stream.advance(numbers.start * steps)
        uniforms = np.random.Generator(stream).random((len(numbers), steps * numbers_per_step), dtype)
        return uniforms[:, :draws]

    def _lists(self) -> Lists:
        if isinstance(self.policy, StochasticLogger):
            return self._drawn_lists(self.policy)
        if isinstance(self.policy, UniformLogger):
            return self._shuffled_lists()
        return self._fixed_lists(self.policy)

    def _fixed_lists(self, policy: RankingPolicy) -> Lists:
        """Each query is ranked once."""
        candidates = self.dataset.candidates
        ranking: IntegerArray = policy.rank(candidates, self.k).astype(index_dtype(candidates))
        relevance = self._relevance_of(np.arange(candidates.n_queries), ranking)
        return lambda _, query: Shown(ranking.take(query, axis=0), relevance.take(query, axis=0))

    def _drawn_lists(self, logger: StochasticLogger) -> Lists:
        """Each session has its own list."""
        candidates = self.dataset.candidates
        scores = logger.policy.score(candidates).astype(np.float64) / logger.temperature
        # As wide as the longest query of all, not of the block, because sums of another length round differently.
        indices = np.arange(candidates.sizes.max())

        def draw(numbers: range, query: IntegerArray) -> Shown:
            where = indices < candidates.sizes[query, None]
            rows = np.where(where, candidates.offsets[query, None] + indices, 0)
            uniforms = self._uniforms(Purpose.RANKING, numbers, len(indices), np.float64)
            ranking, propensity = sample_plackett_luce(scores[rows], where, self.k, uniforms)
            ranking = ranking.astype(index_dtype(candidates))
            return Shown(ranking, self._relevance_of(query, ranking), propensity.astype(np.float32))

        return draw

    def _shuffled_lists(self) -> Lists:
        """Each session has its own list, drawn uniformly."""
        candidates = self.dataset.candidates

        def draw(numbers: range, query: IntegerArray) -> Shown:
            uniforms = self._uniforms(Purpose.RANKING, numbers, self.k, np.float64)
            indices, propensity = sample_uniformly(candidates.sizes[query], self.k, uniforms)
            ranking: IntegerArray = indices.astype(index_dtype(candidates))
            return Shown(ranking, self._relevance_of(query, ranking), propensity.astype(np.float32))

        return draw

    def _relevance_of(self, query: IntegerArray, ranking: IntegerArray) -> Floats:
        """[B, K] the relevance of the documents of these lists, 0 where nothing is shown."""
        rows = self.dataset.candidates.offsets[query, None] + ranking
        grades = np.where(ranking >= 0, self.dataset.relevance[rows], 0)
        return relevance_of(grades, self.dataset.max_grade)


def simulate(
    dataset: RankingDataset,
    policy: RankingPolicy | StochasticLogger | UniformLogger,
    click_model: ClickModel,
    sessions: int,
    k: int = 10,
    seed: int = DEFAULT_SEED,
    progress: Progress | None = None,
) -> ClickLog:
    """A simulated log in memory, section 5.1; the arguments are those of `Simulation`."""
    return Simulation(dataset, policy, click_model, sessions, k, seed).log(progress)


def simulate_to(
    folder: Path,
    simulation: Simulation,
    source: Mapping[str, Any] | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    more: Callable[[Path], None] | None = None,
) -> None:
    """Write a simulated log to a folder block by block: memory does not grow with the number of sessions.

    Args:
        folder: The folder to create, all or nothing.
        simulation: What to simulate.
        source: Provenance to add to `meta.json`, such as the name of the data set.
        overwrite: Whether an existing log is replaced.
        progress: Called with the number of sessions of each block.
        more: Writes other files to the folder before it is renamed to its final name.
    """
    described = {
        "click_model": click_model_table(simulation.click_model),
        "policy": _describe(simulation.policy),
        "seed": simulation.seed,
        "queries": simulation.dataset.candidates.n_queries,
        "documents": simulation.dataset.candidates.n_documents,
        **({"context": [asdict(context) for context in simulation.contexts]} if simulation.contexts else {}),
    }
    blocks = simulation.blocks(progress=progress)
    write_click_log(folder, blocks, {**(source or {}), **described}, overwrite, more)


def _describe(policy: RankingPolicy | StochasticLogger | UniformLogger) -> dict[str, Any]:
    if isinstance(policy, UniformLogger):
        return {"class": type(policy).__name__}
    if isinstance(policy, StochasticLogger):
        return {"temperature": policy.temperature, **_describe(policy.policy)}
    return {"class": type(policy).__name__, "settings": policy.settings()}


def _next_of(under_way: deque[Future[ClickLog]], progress: Progress | None) -> ClickLog:
    block = under_way.popleft().result()
    if progress is not None:
        progress(len(block))
    return block
