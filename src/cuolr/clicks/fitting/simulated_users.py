"""Fitted users as a TOML file with the parameters of documents beside it, and sessions simulated from it.

users.toml      the click model with the fitted global parameters, for labelled documents; and the table `fit`
users.parquet   a row for each query–document pair: query_id, doc_id, and its parameters, such as attractiveness
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import polars as pl
import tomli_w

from cuolr.clicks.click_model import FIT_TABLE, click_model_table
from cuolr.clicks.fitting.click_model_fit import CLICK_FITS, ClickModelFit, Values
from cuolr.clicks.fitting.fit_by_context import FitByContext
from cuolr.clicks.fitting.fit_model import FittedClicks
from cuolr.config import Range, check_arguments, check_ranges, from_dict, read_toml, to_dict
from cuolr.data.compressed_files import count_parquet_rows
from cuolr.data.tables import read_errors, write_errors
from cuolr.errors import InputError, problems_in
from cuolr.files import atomic_file, require_file
from cuolr.logs.click_patterns import ClickPatterns
from cuolr.logs.clicklog import ClickLog, require_single_sessions
from cuolr.logs.columns import index_dtype
from cuolr.logs.contexts import context_levels
from cuolr.logs.page_positions import at_page_positions
from cuolr.logs.session_files import one_each
from cuolr.policies.policy import RankingPolicy
from cuolr.random import DEFAULT_SEED
from cuolr.types import Candidates, Doubles, IntegerArray, Ints

# The parameters of some models grow with the square of the positions.
MAX_POSITIONS = 1_000

Chance = Annotated[float, Range(0, 1)]


@dataclass(frozen=True)
class FitTable:
    """The table `fit` of the TOML file.

    Attributes:
        model: Name of the fitted click model.
        k: Number of positions that it was fitted to.
        pairs: Name of the file of the parameters by pair, in the same folder.
        values: The global parameters; by context, those of the first level, then those of the second one, and so on.
        unseen: The parameters of pairs without sessions.
        intervals: 95 % intervals of the global parameters: lower bounds and upper bounds; −1 = unknown.
        sessions: Number of sessions of the log.
        log: The log that it was fitted to.
        levels: The levels of context; none = all are alike.
        share: The share of the sessions of each level.
    """

    model: str
    k: Annotated[int, Range(1)]
    pairs: str
    values: dict[str, tuple[Chance, ...]] = field(default_factory=dict)
    unseen: dict[str, Chance] = field(default_factory=dict)
    intervals: dict[str, tuple[tuple[float, ...], ...]] = field(default_factory=dict)
    sessions: int = 0
    log: str = ""
    levels: tuple[str, ...] = ()
    share: tuple[Chance, ...] = ()

    def __post_init__(self) -> None:
        check_ranges(self)


def pairs_file(users: Path) -> Path:
    """Where the parameters by pair are, beside the TOML file."""
    return users.with_suffix(".parquet")


def save_users(fitted: FittedClicks, patterns: ClickPatterns, path: Path, log: str = "") -> None:
    """Write a fitted click model to two files.

    Args:
        fitted: The model, not a baseline.
        patterns: The counts that it was fitted to.
        path: The TOML file; the parameters by pair go beside it, see `pairs_file`.
        log: The name of the log, for people.
    """
    simulated = fitted.model.click_model(fitted.values)
    if simulated is None:
        raise InputError(f"'{fitted.name}' is a click rate, not a model of users; it cannot be saved")
    rounded = {name: np.round(fitted.values[name], 6) for name in fitted.global_names}
    table = FitTable(
        model=fitted.name,
        k=fitted.model.k,
        pairs=pairs_file(path).name,
        values={name: tuple(value.tolist()) for name, value in rounded.items()},
        unseen={name: round(value, 6) for name, value in fitted.unseen.items()},
        intervals={name: tuple(_bounds(bounds) for bounds in fitted.interval(name)) for name in fitted.errors},
        sessions=int(patterns.sessions),
        log=log,
        levels=patterns.levels,
        share=fitted.model.share if isinstance(fitted.model, FitByContext) else (),
    )
    candidates = patterns.candidates
    columns = {"query_id": candidates.query_ids[candidates.query_of_document[patterns.pairs]]}
    columns |= {"doc_id": candidates.document_names[patterns.pairs]}
    frame = pl.DataFrame({**columns, **{name: fitted.values[name] for name in fitted.model.by_pair}})
    path.parent.mkdir(parents=True, exist_ok=True)
    with write_errors(pairs_file(path)), atomic_file(pairs_file(path)) as unfinished:
        frame.write_parquet(unfinished)
    with atomic_file(path) as unfinished:
        content = {**_rounded(click_model_table(simulated)), FIT_TABLE: to_dict(table)}
        unfinished.write_text(tomli_w.dumps(content), encoding="utf-8")


@dataclass(frozen=True)
class SimulatedUsers:
    """Users of a fitted click model, on the documents of a log.

    Attributes:
        model: The click model, with a pair for each document of the candidates.
        values: Its parameters.
        known: Share of the candidates' documents that have parameters of their own.
    """

    model: ClickModelFit
    values: Mapping[str, Doubles]
    known: float

    def by_level(self, log: ClickLog) -> Iterator[tuple[ClickModelFit, Values, Ints]]:
        """The users of each level of context, with the rows of a log in it; those of all, if the level is not known."""
        model = self.model
        if not isinstance(model, FitByContext):
            yield model, self.values, np.arange(len(log))
            return
        known = dict(zip(model.levels, model.split(self.values), strict=True))
        levels, level = context_levels(log)
        for number, name in enumerate(levels):
            users = (model.of_level, known[name]) if name in known else (model, self.values)
            yield *users, np.flatnonzero(level == number)


def load_users(path: Path, candidates: Candidates) -> SimulatedUsers:
    """Read fitted users for these documents, matched by the ids of query and document.

    Args:
        path: The TOML file.
        candidates: Documents without parameters of their own have those of unseen pairs.
    """
    content = read_toml(path)
    with problems_in(path):
        if FIT_TABLE not in content:
            raise InputError(
                f"expected the table '{FIT_TABLE}', as `cuolr fit-clicks --out` writes it, found none; a click model "
                "without it needs a labelled data set"
            )
        table = from_dict(FitTable, content[FIT_TABLE], FIT_TABLE)
        if not table.pairs.isprintable() or Path(table.pairs).name != (table.pairs or ".") or table.k > MAX_POSITIONS:
            raise InputError(
                f"table '{FIT_TABLE}': expected `pairs` = the name of a file in the same folder and `k` = at most "
                f"{MAX_POSITIONS:,}, found {table.pairs!r} and {table.k}"
            )
        model = _model(table, candidates.n_documents)
        expected = {name: len(value) for name, value in model.start().items() if name not in model.by_pair}
        found = {name: len(value) for name, value in table.values.items()}
        if found != expected or set(table.unseen) != set(model.by_pair):
            raise InputError(f"setting '{FIT_TABLE}.values': expected {expected} numbers, found {found}")
    frame = _read_pairs(path.with_name(table.pairs), model)
    names = {"query_id": candidates.query_ids[candidates.query_of_document], "doc_id": candidates.document_names}
    joined = pl.DataFrame(names).join(frame, on=["query_id", "doc_id"], how="left", maintain_order="left")
    values = {name: np.array(value) for name, value in table.values.items()}
    for name in model.by_pair:
        values[name] = joined[name].fill_null(table.unseen[name]).to_numpy()
    known = 1 - joined[model.by_pair[0]].null_count() / max(len(joined), 1)
    return SimulatedUsers(model, values, known)


def _model(table: FitTable, pairs: int) -> ClickModelFit:
    model = CLICK_FITS.get(table.model)(table.k, pairs)
    if not table.levels:
        return model
    if len(table.share) != len(table.levels) or not sum(table.share) > 0:
        raise InputError(f"setting '{FIT_TABLE}.share': expected {len(table.levels)} shares, found {table.share}")
    return FitByContext(table.k, pairs, model, table.levels, table.share)


def _read_pairs(file: Path, model: ClickModelFit) -> pl.DataFrame:
    needed = ["query_id", "doc_id", *model.by_pair]
    require_file(file)
    with read_errors(file):
        count_parquet_rows(file)
        frame = pl.read_parquet(file, glob=False)
    missing = [name for name in needed if name not in frame.columns]
    if missing:
        raise InputError(f"{file}: expected the columns {', '.join(needed)}, found no {', '.join(missing)}")
    types = [pl.col("query_id", "doc_id").cast(pl.String), pl.col(model.by_pair).cast(pl.Float64)]
    try:
        frame = frame.select(types)
    except pl.exceptions.PolarsError as error:
        raise InputError(f"{file}: {' '.join(str(error).split())}") from None
    for name in model.by_pair:
        if not frame[name].is_between(0, 1).all():
            raise InputError(f"{file}: column '{name}': expected numbers from 0 to 1")
    return frame.unique(["query_id", "doc_id"], keep="first", maintain_order=True)


def _bounds(values: Doubles) -> tuple[float, ...]:
    return tuple(np.round(np.nan_to_num(values, nan=-1), 6).tolist())


def _rounded(value: Any) -> Any:
    """Numbers with six decimals, which people can read."""
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return round(value, 6) if isinstance(value, float) else value


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
