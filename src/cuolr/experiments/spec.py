"""The description of an experiment: the cells of a table or a figure, as in its TOML file."""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Self, TypeVar, get_args

from cuolr.clicks.click_model import CLICK_MODELS, ClickModel, click_model_from
from cuolr.config import Range, from_dict
from cuolr.random import DEFAULT_SEED
from cuolr.registry import unknown_name
from cuolr.supervised.oracle import LambdaMartSettings
from cuolr.training.base_learner import LEARNERS
from cuolr.training.presets.configure import RunConfig, configure

T = TypeVar("T")

# Rankers for comparison that learn from labels or not at all. They are left of the wall, so they are not learners.
ReferenceRanker = Literal["logging", "oracle", "oracle-best", "skyline"]
REFERENCE_RANKERS: tuple[ReferenceRanker, ...] = get_args(ReferenceRanker)
# Those that do not depend on a log. `logging` and `skyline` depend on the lists that were shown, not on the clicks.
WITHOUT_LOG = ("oracle", "oracle-best")

# The tables of the paper's numbers.
PaperTable = Literal[
    "table1_click_models",
    "appendix_click_models",
    "table2_state_embedding",
    "appendix_state_embedding",
    "logging_policy_quality",
    "sac_vs_cql_best_conservatism",
]


@dataclass(frozen=True)
class Method:
    """A row of a table.

    Attributes:
        learner: A registered learner, or a reference ranker.
        preset: Preset for settings that are not given here.
        settings: As for `presets.configure`.
        propensities: The click model that propensities are estimated under; None = the one that simulates the log.
        true_examination: Whether it learns from the documents that users examined alone, which only a simulator knows.
        sweep: A setting and its values. Each value becomes a method of its own, named after it.
        swept_from: The method whose sweep made this one; `sweep` then has this method's value alone.
    """

    learner: str
    preset: str = "default"
    settings: dict[str, Any] = field(default_factory=dict)
    propensities: str | None = None
    true_examination: bool = False
    sweep: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    swept_from: str = ""

    @property
    def is_reference(self) -> bool:
        """Whether it is a reference ranker, which learns nothing from clicks."""
        return self.learner in REFERENCE_RANKERS

    @property
    def swept_value(self) -> Any:
        """The value of the swept setting; None without a sweep."""
        return next(iter(self.sweep.values()))[0] if self.swept_from else None


@dataclass(frozen=True)
class Logging:
    """A logging policy.

    Attributes:
        name: The ranker.
        fraction: Share of the training queries that ranksvm is trained on.
    """

    name: Literal["ranksvm", "random"] = "ranksvm"
    fraction: Annotated[float, Range(above=0, at_most=1)] = 0.01


@dataclass(frozen=True)
class Grid:
    """Cells: every method under every click model, logging policy and number of sessions.

    Attributes:
        method: The rows of a table.
        click_model: Names of click models.
        logging: Names of logging policies.
        sessions_per_query: Mean numbers of sessions per query.
        title: Title of the grid, in an experiment with several grids.
    """

    method: tuple[str, ...]
    click_model: tuple[str, ...] = ("pbm",)
    logging: tuple[str, ...] = ("ranksvm",)
    sessions_per_query: tuple[Annotated[int, Range(1)], ...] = (200,)
    title: str = ""


@dataclass(frozen=True, order=True)
class Cell:
    """One run: a method, and what it learns from. Fields that do not apply to the method are empty.

    Attributes:
        method: Its name in the experiment.
        fold: Fold of the data; 0 = the data has no folds.
        seed: Seed of the logging policy, the log and the training.
        logging: Name of the logging policy; "" for methods that do not depend on it.
        click_model: Name of the click model, or "".
        sessions_per_query: Mean number of sessions per query, or 0.
    """

    method: str
    fold: int = 0
    seed: int = DEFAULT_SEED
    logging: str = ""
    click_model: str = ""
    sessions_per_query: int = 0

    def __str__(self) -> str:
        """The cell in words; part of the name of its result, so it must not change."""
        parts = [f"fold {self.fold}" if self.fold else f"seed {self.seed}", self.logging, self.click_model]
        sessions = f"{self.sessions_per_query} sessions a query" if self.sessions_per_query else ""
        return ", ".join(part for part in (*parts, sessions, self.method) if part)


@dataclass(frozen=True)
class Layout:
    """How the report shows an experiment.

    Attributes:
        columns: The columns of the table; its rows are the methods.
        curve: The horizontal axis of a plot of a sweep or of a grid.
        paper: The tables of the paper whose numbers are printed beside ours; the first that has a number is used.
        paper_names: The paper's names of methods and columns, if they differ from ours.
        baselines: The other methods are tested against the best of these; None = all whose learner is a baseline.
        differences: Methods by name, each with another whose difference to it is shown with an interval.
    """

    columns: Literal["click_model", "logging", "sessions_per_query"] = "click_model"
    curve: Literal["", "value", "sessions_per_query", "click_model", "logging"] = ""
    paper: tuple[PaperTable, ...] = ()
    paper_names: dict[str, str] = field(default_factory=dict)
    baselines: tuple[str, ...] | None = None
    differences: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Experiment:
    """The content of an experiment's file.

    Attributes:
        title: A short title.
        grid: The cells.
        about: What the experiment shows.
        measures: Measured on test queries.
        validation: The measure on labelled validation queries that chooses the best step; `log` = held-out clicks.
        split: The queries to measure on.
        seeds: Number of runs, on data without folds.
        first_seed: Seed of the first run, or of every fold.
        k: Length of the lists.
        randomised_lists: Number of lists that propensities are estimated from.
        training: Settings of `TrainingConfig`, the same for every learner.
        method: Methods by name; the name of a learner is also a method.
        click_model: Click models by name, as `click_model_from` takes them; registered names need no entry.
        logging: Logging policies by name. `ranksvm` (on 1 % of the queries) and `random` are predefined.
        report: How the report shows it.
    """

    title: str
    grid: tuple[Grid, ...]
    about: str = ""
    measures: tuple[str, ...] = ("ndcg@3", "ndcg@5", "ndcg@10", "err@3", "err@5", "err@10")
    validation: str = "ndcg@10"
    split: Literal["vali", "test"] = "test"
    seeds: Annotated[int, Range(1)] = 5
    first_seed: Annotated[int, Range(0)] = DEFAULT_SEED
    k: Annotated[int, Range(1)] = 10
    randomised_lists: Annotated[int, Range(1)] = 1_000_000
    training: dict[str, Any] = field(default_factory=dict)
    method: dict[str, Method] = field(default_factory=dict)
    click_model: dict[str, dict[str, Any]] = field(default_factory=dict)
    logging: dict[str, Logging] = field(default_factory=dict)
    report: Layout = Layout()

    def with_changes(self, steps: int | None = None, seeds: int | None = None) -> Self:
        """The experiment with another number of training steps or seeds; None = unchanged."""
        training = self.training if steps is None else {**self.training, "steps": steps}
        return dataclasses.replace(self, training=training, seeds=self.seeds if seeds is None else seeds)

    def cells(self, folds: Sequence[int]) -> list[Cell]:
        """All distinct cells, ordered so that cells of one log are together.

        Args:
            folds: Folds of the data; empty = `seeds` runs on the same data.
        """
        first = self.first_seed
        runs = [(fold, first) for fold in folds] or [(0, seed) for seed in range(first, first + self.seeds)]
        cells: dict[Cell, None] = {}
        for (fold, seed), grid in itertools.product(runs, self.grid):
            logs = itertools.product(grid.logging, grid.sessions_per_query, grid.click_model)
            for (logging, sessions, clicks), method in itertools.product(logs, grid.method):
                cells[self._cell(Cell(method, fold, seed, logging, clicks, sessions))] = None
        return list(cells)

    def _cell(self, cell: Cell) -> Cell:
        """The cell without the fields that do not apply to its method."""
        method = self.method_named(cell.method)
        if method.learner in WITHOUT_LOG:
            return Cell(cell.method, cell.fold, cell.seed)
        if method.is_reference:
            return Cell(cell.method, cell.fold, cell.seed, cell.logging)
        return cell

    @property
    def methods(self) -> list[str]:
        """The distinct methods of all grids."""
        return list(dict.fromkeys(name for grid in self.grid for name in grid.method))

    @property
    def baselines(self) -> tuple[str, ...]:
        """The baselines; other methods are tested against the best of them."""
        if self.report.baselines is not None:
            return self.report.baselines
        learners = {name: self.method_named(name) for name in self.methods}
        return tuple(
            name
            for name, method in learners.items()
            if not (method.is_reference or method.true_examination) and LEARNERS.get(method.learner).role == "baseline"
        )

    def method_named(self, name: str) -> Method:
        """The method of that name."""
        if name in self.method:
            return self.method[name]
        return _named("method", name, {own: Method(own) for own in (*LEARNERS.names(), *REFERENCE_RANKERS)})

    def click_model_table(self, name: str) -> Mapping[str, Any]:
        """The click model of that name as a table."""
        if name in self.click_model:
            return self.click_model[name]
        return _named("click model", name, {own: {"name": own} for own in CLICK_MODELS.names()})

    def click_model_named(self, name: str) -> ClickModel:
        """The click model of that name."""
        return click_model_from(self.click_model_table(name))

    def logging_named(self, name: str) -> Logging:
        """The logging policy of that name."""
        return _named("logging policy", name, {"ranksvm": Logging(), "random": Logging("random"), **self.logging})

    def takes_propensities(self, cell: Cell) -> bool:
        """Whether the cell's learner takes examination probabilities."""
        method = self.method_named(cell.method)
        return not method.is_reference and LEARNERS.get(method.learner).takes_propensities

    def config_of(self, cell: Cell) -> RunConfig | None:
        """All settings of the cell's learner; None for a reference ranker."""
        method = self.method_named(cell.method)
        if method.is_reference:
            return None
        settings = {f"training.{name}": value for name, value in self.training.items()} | method.settings
        if "threads" in {field.name for field in dataclasses.fields(LEARNERS.get(method.learner).Config)}:
            settings["learner.threads"] = 1  # each cell has one core
        return configure(method.learner, method.preset, {**settings, "training.seed": cell.seed})


def self_contained(experiment: Experiment) -> Experiment:
    """The experiment as described in saved results, readable without the code of its learners and click models.

    Learners and click models that the grids name directly get their own table, and the baselines are listed.
    """
    click_models = dict.fromkeys(name for grid in experiment.grid for name in grid.click_model)
    return dataclasses.replace(
        experiment,
        method={**experiment.method, **{name: experiment.method_named(name) for name in experiment.methods}},
        click_model={
            **experiment.click_model,
            **{name: dict(experiment.click_model_table(name)) for name in click_models},
        },
        report=dataclasses.replace(experiment.report, baselines=experiment.baselines),
    )


def oracle_settings(method: Method, seed: int) -> LambdaMartSettings:
    """Settings of ORACLE: the paper's, updated with those of the method."""
    return from_dict(LambdaMartSettings, {**method.settings, "seed": seed, "threads": 1})


def _named(kind: str, name: str, known: Mapping[str, T]) -> T:
    if name not in known:
        raise unknown_name(kind, name, known)
    return known[name]
