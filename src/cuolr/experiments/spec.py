"""What an experiment is: the cells of a table or a figure, as its TOML file describes them."""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from cuolr.clicks.click_model import CLICK_MODELS, ClickModel, click_model_from
from cuolr.config import from_dict
from cuolr.errors import InputError
from cuolr.registry import unknown_name
from cuolr.supervised.oracle import LambdaMartSettings
from cuolr.training.base_learner import LEARNERS
from cuolr.training.presets.configure import RunConfig, configure

T = TypeVar("T")

# Methods that learn from labels or not at all; left of the wall, so not among the learners.
Yardstick = Literal["logging", "oracle", "oracle-best", "skyline"]
YARDSTICKS: tuple[Yardstick, ...] = ("logging", "oracle", "oracle-best", "skyline")
# Learners that others are compared with.
BASELINES = ("naive", "ipw", "cm-ipw", "dla", "two-tower", "lightgbm", "xgboost")
# What the log cannot change; logging and skyline depend on what was shown, but not on the clicks.
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
        learner: A registered learner, or a yardstick.
        preset: Where settings come from that are not given here.
        settings: As for `presets.configure`.
        propensities: The click model that propensities are estimated under; None = the one that the log is from.
        sweep: A setting and its values: a method of its own for each, named after it.
        swept_from: The method that this one is made from by its sweep; it is left with one value.
    """

    learner: str
    preset: str = "default"
    settings: dict[str, Any] = field(default_factory=dict)
    propensities: str | None = None
    sweep: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    swept_from: str = ""

    @property
    def swept_value(self) -> Any:
        """The value of the setting that was swept; None where there was no sweep."""
        return next(iter(self.sweep.values()))[0] if self.swept_from else None


@dataclass(frozen=True)
class Logging:
    """A logging policy.

    Attributes:
        name: What ranks.
        fraction: Share of the training queries that ranksvm learns from.
    """

    name: Literal["ranksvm", "random"] = "ranksvm"
    fraction: float = 0.01


@dataclass(frozen=True)
class Grid:
    """Cells: every method under every click model, logging policy and number of sessions.

    Attributes:
        method: The rows of a table.
        click_model: Their names.
        logging: Logging policies.
        sessions_per_query: On average.
        title: What it shows, where an experiment has several grids.
    """

    method: tuple[str, ...]
    click_model: tuple[str, ...] = ("pbm",)
    logging: tuple[str, ...] = ("ranksvm",)
    sessions_per_query: tuple[int, ...] = (200,)
    title: str = ""


@dataclass(frozen=True, order=True)
class Cell:
    """One run: a method, and what it learns from. What cannot matter to the method is left open.

    Attributes:
        method: Its name in the experiment.
        fold: Of the data; 0 where there are none.
        seed: Of the logging policy, the log and the training.
        logging: The logging policy's name in the experiment; "" for methods that do not depend on it.
        click_model: Its name in the experiment, or "".
        sessions_per_query: On average, or 0.
    """

    method: str
    fold: int = 0
    seed: int = 1
    logging: str = ""
    click_model: str = ""
    sessions_per_query: int = 0

    def __str__(self) -> str:
        """As people read it."""
        parts = [f"fold {self.fold}" if self.fold else f"seed {self.seed}", self.logging, self.click_model]
        sessions = f"{self.sessions_per_query} sessions a query" if self.sessions_per_query else ""
        return ", ".join(part for part in (*parts, sessions, self.method) if part)


@dataclass(frozen=True)
class Layout:
    """How the report shows an experiment.

    Attributes:
        columns: What the columns of the table are; the rows are the methods.
        curve: What the horizontal axis of a plot is, where there is a sweep or a grid to plot.
        paper: The tables of the paper's numbers to print beside ours, the first that has a number counts.
        paper_names: The paper's name of a method or column, where it is not ours.
        baselines: Methods whose best one the others are tested against; None = all that are of the `BASELINES`.
    """

    columns: Literal["click_model", "logging", "sessions_per_query"] = "click_model"
    curve: Literal["", "value", "sessions_per_query", "click_model", "logging"] = ""
    paper: tuple[PaperTable, ...] = ()
    paper_names: dict[str, str] = field(default_factory=dict)
    baselines: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Experiment:
    """All that an experiment's file says.

    Attributes:
        title: In a few words.
        grid: The cells.
        about: What it shows.
        measures: On test queries.
        validation: What the best step of a run is chosen by, on labelled validation queries; `log` = by the log alone.
        split: The queries that are measured.
        seeds: How many runs, where the data has no folds.
        first_seed: Of the first run, or of every fold; another than in tuning, so that no log is seen twice.
        k: Length of the lists.
        randomised_lists: From which propensities are estimated.
        training: Settings of `TrainingConfig`, the same for every learner.
        method: Methods by name; a learner's own name is one too.
        click_model: Click models by name, as `click_model_from` takes them; a registered name is one too.
        logging: Logging policies by name; `ranksvm` (on 1 % of the queries) and `random` are there.
        report: How the report shows it.
    """

    title: str
    grid: tuple[Grid, ...]
    about: str = ""
    measures: tuple[str, ...] = ("ndcg@3", "ndcg@5", "ndcg@10", "err@3", "err@5", "err@10")
    validation: str = "ndcg@10"
    split: Literal["vali", "test"] = "test"
    seeds: int = 5
    first_seed: int = 1
    k: int = 10
    randomised_lists: int = 1_000_000
    training: dict[str, Any] = field(default_factory=dict)
    method: dict[str, Method] = field(default_factory=dict)
    click_model: dict[str, dict[str, Any]] = field(default_factory=dict)
    logging: dict[str, Logging] = field(default_factory=dict)
    report: Layout = Layout()

    def cells(self, folds: Sequence[int]) -> list[Cell]:
        """All cells, each once, those that share a log together.

        Args:
            folds: Of the data; none = `seeds` runs on the same data.
        """
        first = self.first_seed
        runs = [(fold, first) for fold in folds] or [(0, seed) for seed in range(first, first + self.seeds)]
        found: dict[Cell, None] = {}
        for (fold, seed), grid in itertools.product(runs, self.grid):
            for logging, sessions, clicks in itertools.product(grid.logging, grid.sessions_per_query, grid.click_model):
                for method in grid.method:
                    found[self._cell(method, fold, seed, logging, clicks, sessions)] = None
        return list(found)

    def _cell(self, method: str, fold: int, seed: int, logging: str, clicks: str, sessions: int) -> Cell:
        learner = self.method_named(method).learner
        if learner in WITHOUT_LOG:
            return Cell(method, fold, seed)
        if learner in YARDSTICKS:
            return Cell(method, fold, seed, logging)
        return Cell(method, fold, seed, logging, clicks, sessions)

    @property
    def baselines(self) -> tuple[str, ...]:
        """Methods whose best one the others are tested against."""
        if self.report.baselines is not None:
            return self.report.baselines
        methods = dict.fromkeys(name for grid in self.grid for name in grid.method)
        return tuple(method for method in methods if self.method_named(method).learner in BASELINES)

    def method_named(self, name: str) -> Method:
        """The method of that name."""
        known = {**{learner: Method(learner) for learner in (*LEARNERS.names(), *YARDSTICKS)}, **self.method}
        return _named("method", name, known)

    def click_model_named(self, name: str) -> ClickModel:
        """The click model of that name."""
        tables = {**{known: {"name": known} for known in CLICK_MODELS.names()}, **self.click_model}
        return click_model_from(_named("click model", name, tables))

    def logging_named(self, name: str) -> Logging:
        """The logging policy of that name."""
        return _named("logging policy", name, {"ranksvm": Logging(), "random": Logging("random"), **self.logging})

    def config_of(self, cell: Cell) -> RunConfig | None:
        """All settings of the cell's learner; None for a yardstick."""
        method = self.method_named(cell.method)
        if method.learner in YARDSTICKS:
            return None
        settings = {f"training.{name}": value for name, value in self.training.items()} | method.settings
        if "threads" in {field.name for field in dataclasses.fields(LEARNERS.get(method.learner).Config)}:
            settings["learner.threads"] = 1  # a cell has a core of its own
        return configure(method.learner, method.preset, {**settings, "training.seed": cell.seed})


def oracle_settings(method: Method, seed: int) -> LambdaMartSettings:
    """Of ORACLE: the paper's, but for what the method sets."""
    return from_dict(LambdaMartSettings, {**method.settings, "seed": seed, "threads": 1})


def select(cells: Sequence[Cell], experiment: Experiment, only: str) -> list[Cell]:
    """The cells that a condition such as `click_model=pbm,learner=cql` names; a key given twice takes either value.

    Yardsticks stay, unless the condition is on the method or the learner: all is measured against them.
    """
    described = [(cell, _axes(cell, experiment)) for cell in cells]
    known = {key: {axes[key] for _, axes in described} - {""} for key in _AXES}
    wanted = {
        key: {_spelled(key, value, known[key]) for value in values} for key, values in _conditions(only, known).items()
    }
    chosen = [
        cell
        for cell, axes in described
        if all(axes[key] in values or (not axes[key] and key != "encoder") for key, values in wanted.items())
    ]
    if not chosen:
        raise InputError(f"--only: no cell of the experiment meets all of '{only}'; give fewer conditions")
    return chosen


def _conditions(only: str, known: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """The values that are wanted of each key. A name may have commas, such as the method `SAC, shown`."""
    parts: list[str] = []
    for part in filter(str.strip, only.split(",")):
        key, equals, begun = parts[-1].partition("=") if parts else ("", "", "")
        names = known.get(key.strip(), ()) if equals else ()
        if any(f"{name},".startswith(f"{begun},{part}".strip() + ",") for name in names):
            parts[-1] += f",{part}"
        else:
            parts.append(part)
    wanted: dict[str, set[str]] = {}
    for part in parts:
        key, equals, value = map(str.strip, part.partition("="))
        if not equals:
            raise InputError(f"--only: expected <name>=<value>, such as click_model=pbm, found '{part.strip()}'")
        if key not in known:
            raise unknown_name("name in --only", key, known)
        if not known[key]:
            raise InputError(f"--only: {part.strip()}: no cell of this experiment on this data has a {key}")
        wanted.setdefault(key, set()).add(value)
    return wanted


def _spelled(key: str, value: str, known: set[str]) -> str:
    """A value as the experiment has it; people write PBM as the report does."""
    alike = [name for name in known if name.casefold() == value.casefold()]
    if value in known or len(alike) != 1:
        return _named(f"value of --only {key}", value, {name: name for name in known})
    return alike[0]


# What a condition can name of a cell.
_AXES = (*(f.name for f in dataclasses.fields(Cell)), "learner", "encoder")


def _axes(cell: Cell, experiment: Experiment) -> dict[str, str]:
    """Its value of each of `_AXES`; "" = it has none."""
    config = experiment.config_of(cell)
    encoder = getattr(config.learner_config, "encoder", "") if config else ""
    values = {str(f.name): str(getattr(cell, f.name) or "") for f in dataclasses.fields(cell)}
    return {
        **values,
        "seed": str(cell.seed),
        "learner": experiment.method_named(cell.method).learner,
        "encoder": encoder,
    }


def _named(what: str, name: str, known: Mapping[str, T]) -> T:
    if name not in known:
        raise unknown_name(what, name, known)
    return known[name]
