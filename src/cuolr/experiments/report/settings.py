"""What a method learns from, and how a report lays it out in columns and tables."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter

from cuolr.clicks.click_model import CLICK_MODELS
from cuolr.experiments.spec import Cell, Experiment, Grid

AXES = ("click_model", "logging", "sessions_per_query")


@dataclass(frozen=True)
class Setting:
    """What a method learns from: the logging policy, the click model and the number of sessions, as in `Cell`."""

    logging: str
    click_model: str
    sessions_per_query: int

    def includes(self, cell: Cell) -> bool:
        """Whether a cell belongs to it; what cannot matter to the cell's method is left open there."""
        return (
            cell.logging in ("", self.logging)
            and cell.click_model in ("", self.click_model)
            and cell.sessions_per_query in (0, self.sessions_per_query)
        )

    def label(self, axes: Sequence[str]) -> str:
        """As people read it.

        >>> Setting("ranksvm", "pbm", 1000).label(["click_model", "sessions_per_query"])
        'PBM, 1,000 sessions a query'
        """
        return ", ".join(filter(None, (self._part(axis) for axis in axes)))

    def _part(self, axis: str) -> str:
        if axis == "sessions_per_query":
            plural = "" if self.sessions_per_query == 1 else "s"
            return f"{self.sessions_per_query:,} session{plural} a query" if self.sessions_per_query else ""
        name = str(getattr(self, axis))
        return name.upper() if axis == "click_model" and name in CLICK_MODELS.names() else name


@dataclass(frozen=True)
class Columns:
    """The columns of a table.

    Attributes:
        title: What the table is about, where there are several.
        settings: Left to right.
        labels: What each is called.
        axes: What the labels tell.
        methods: The rows.
    """

    title: str
    settings: tuple[Setting, ...]
    labels: tuple[str, ...]
    axes: tuple[str, ...]
    methods: tuple[str, ...]


def settings_of(cells: Iterable[Cell]) -> list[Setting]:
    """All settings, in the order of the cells; where there are yardsticks alone, theirs."""
    found = dict.fromkeys(Setting(c.logging, c.click_model, c.sessions_per_query) for c in cells)
    fullest = max((_fullness(setting) for setting in found), default=0)
    return [setting for setting in found if _fullness(setting) == fullest]


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
            experiment.report.columns,
            title,
            tuple(dict.fromkeys(method for grid in members for method in grid.method)),
        )
    ]


def _split(settings: Sequence[Setting], columns: str, title: str, methods: tuple[str, ...]) -> Iterator[Columns]:
    """A table for each combination of what is not in the columns.

    Settings that would be alone in theirs are together in a last one.
    """
    others = [axis for axis in AXES if axis != columns]
    groups: dict[tuple[object, ...], list[Setting]] = {}
    for setting in settings:
        groups.setdefault(attrgetter(*others)(setting), []).append(setting)
    several = [group for group in groups.values() if len(group) > 1]
    alone = [group[0] for group in groups.values() if len(group) == 1]
    tables = [*several, *([alone] if alone else [])]
    tell = _varying(settings, others) if len(tables) > 1 else []
    for group in tables:
        axes = tuple(_varying(group, AXES)) or (columns,)
        shared = group[0].label([axis for axis in tell if axis not in axes])
        labels = tuple(setting.label(axes) or "all" for setting in group)
        yield Columns(": ".join(filter(None, (title, shared))), tuple(group), labels, axes, methods)


def _is_in(setting: Setting, grid: Grid) -> bool:
    """Whether a grid has cells of the setting; where there are yardsticks alone, parts of it are left open."""
    return (
        setting.logging in ("", *grid.logging)
        and setting.click_model in ("", *grid.click_model)
        and setting.sessions_per_query in (0, *grid.sessions_per_query)
    )


def _varying(settings: Sequence[Setting], axes: Sequence[str]) -> list[str]:
    return [axis for axis in axes if len({getattr(setting, axis) for setting in settings}) > 1]


def _fullness(setting: Setting) -> int:
    return sum(map(bool, (setting.logging, setting.click_model, setting.sessions_per_query)))
