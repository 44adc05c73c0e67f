"""Settings that methods learn in, and the columns and tables of a report that show them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter

from cuolr.experiments.spec import Cell, Experiment, Grid

AXES = ("click_model", "logging", "sessions_per_query")


@dataclass(frozen=True)
class Setting:
    """What a method learns from: the logging policy, the click model and the number of sessions, as in `Cell`."""

    logging: str
    click_model: str
    sessions_per_query: int

    def includes(self, cell: Cell) -> bool:
        """Whether a cell belongs to it; fields that do not apply to the cell's method are empty."""
        return (
            cell.logging in ("", self.logging)
            and cell.click_model in ("", self.click_model)
            and cell.sessions_per_query in (0, self.sessions_per_query)
        )


def label_of(setting: Setting, axes: Sequence[str], experiment: Experiment) -> str:
    """A setting in words, such as `PBM, 1,000 sessions per query`.

    Args:
        setting: A setting of the experiment.
        axes: The axes to mention.
        experiment: Knows whether a click model has its registered name, which is written in capitals.
    """
    parts = []
    for axis in axes:
        part = str(getattr(setting, axis) or "")
        if part and axis == "sessions_per_query":
            plural = "" if setting.sessions_per_query == 1 else "s"
            part = f"{setting.sessions_per_query:,} session{plural} per query"
        elif part and axis == "click_model" and experiment.click_model_table(part).get("name") == part:
            part = part.upper()
        parts.append(part)
    return ", ".join(filter(None, parts))


@dataclass(frozen=True)
class Columns:
    """The columns of a table.

    Attributes:
        title: Title of the table, if there are several.
        settings: The settings, left to right.
        labels: The column heads.
        axes: The axes that the labels mention.
        methods: The rows.
    """

    title: str
    settings: tuple[Setting, ...]
    labels: tuple[str, ...]
    axes: tuple[str, ...]
    methods: tuple[str, ...]


def settings_of(cells: Iterable[Cell]) -> list[Setting]:
    """All settings, in the order of the cells; if there are reference rankers only, theirs."""
    settings = dict.fromkeys(Setting(c.logging, c.click_model, c.sessions_per_query) for c in cells)
    fullest = max((_fullness(setting) for setting in settings), default=0)
    return [setting for setting in settings if _fullness(setting) == fullest]


def columns_of(experiment: Experiment, settings: Sequence[Setting]) -> list[Columns]:
    """The columns of each table: of each grid with a title, and of all grids without one together.

    Args:
        experiment: What was run.
        settings: Those that it has cells of.
    """
    grids: dict[str, list[Grid]] = {}
    for grid in experiment.grid:
        grids.setdefault(grid.title, []).append(grid)
    return [
        columns
        for title, members in grids.items()
        for columns in _split(
            [setting for setting in settings if any(_is_in(setting, grid) for grid in members)],
            experiment,
            title,
            tuple(dict.fromkeys(method for grid in members for method in grid.method)),
        )
    ]


def _split(
    settings: Sequence[Setting], experiment: Experiment, title: str, methods: tuple[str, ...]
) -> Iterator[Columns]:
    """A table for each combination of the axes that are not in the columns.

    Settings that would be the only column of their table share a last one.
    """
    columns = experiment.report.columns
    others = [axis for axis in AXES if axis != columns]
    groups: dict[tuple[object, ...], list[Setting]] = {}
    for setting in settings:
        groups.setdefault(attrgetter(*others)(setting), []).append(setting)
    several = [group for group in groups.values() if len(group) > 1]
    alone = [group[0] for group in groups.values() if len(group) == 1]
    tables = [*several, *([alone] if alone else [])]
    mentioned = _varying(settings, others) if len(tables) > 1 else []
    for group in tables:
        axes = tuple(_varying(group, AXES)) or (columns,)
        shared = label_of(group[0], [axis for axis in mentioned if axis not in axes], experiment)
        labels = tuple(label_of(setting, axes, experiment) or "all" for setting in group)
        yield Columns(": ".join(filter(None, (title, shared))), tuple(group), labels, axes, methods)


def _is_in(setting: Setting, grid: Grid) -> bool:
    """Whether a grid has cells of the setting, parts of which are empty for reference rankers."""
    return (
        setting.logging in ("", *grid.logging)
        and setting.click_model in ("", *grid.click_model)
        and setting.sessions_per_query in (0, *grid.sessions_per_query)
    )


def _varying(settings: Sequence[Setting], axes: Sequence[str]) -> list[str]:
    return [axis for axis in axes if len({getattr(setting, axis) for setting in settings}) > 1]


def _fullness(setting: Setting) -> int:
    return sum(map(bool, (setting.logging, setting.click_model, setting.sessions_per_query)))
