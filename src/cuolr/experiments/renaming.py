"""Renaming of methods, learners and settings in saved results, so that a rename in the code needs no new runs."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cuolr.config import from_dict, read_toml
from cuolr.errors import InputError, problems_in
from cuolr.experiments.fingerprints import digests_from, fingerprinted_name
from cuolr.experiments.results import CellResult, Description, Results
from cuolr.experiments.spec import Cell, Experiment, Grid, Layout, Method

EVERY_LEARNER = "*"


@dataclass(frozen=True)
class Renames:
    """New names. Names that are not listed are kept, so that renames can be applied again.

    Settings are listed by the new name of their learner, or by `*` for every learner. They are written as
    `learner.hidden` or `training.steps`, and nested ones as `learner.rankers.hidden`.

    Attributes:
        method: New names of methods.
        learner: New names of learners.
        setting: New names of settings.
        value: New values, for each setting by its new name; items of a list are values, too.
        added: Settings that did not exist, with the value that corresponds to the former behaviour.
        removed: Settings that no longer exist.
        text: Replacements in titles and descriptions.
    """

    method: dict[str, str] = field(default_factory=dict)
    learner: dict[str, str] = field(default_factory=dict)
    setting: dict[str, dict[str, str]] = field(default_factory=dict)
    value: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    added: dict[str, dict[str, Any]] = field(default_factory=dict)
    removed: dict[str, tuple[str, ...]] = field(default_factory=dict)
    text: dict[str, str] = field(default_factory=dict)

    def settings(self, learner: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Settings by dotted name, with their new names and values.

        >>> renames = Renames(setting={"trees": {"learner.size": "learner.tree.leaves"}})
        >>> renames.settings("trees", {"learner.size": 7, "training.steps": 9})
        {'learner.tree.leaves': 7, 'training.steps': 9}
        """
        names = self.setting.get(EVERY_LEARNER, {}) | self.setting.get(learner, {})
        values = self.value.get(EVERY_LEARNER, {}) | self.value.get(learner, {})
        removed = {*self.removed.get(EVERY_LEARNER, ()), *self.removed.get(learner, ())}
        renamed = {names.get(name, name): value for name, value in given.items() if name not in removed}
        return {name: _new_value(value, values.get(name, {})) for name, value in renamed.items()}

    def all_settings(self, tables: Mapping[str, Any]) -> dict[str, Any]:
        """The complete settings of a run, as `RunConfig.as_dict` gives them."""
        if not tables:
            return {}
        learner = self.learner.get(str(tables["learner"]["name"]), str(tables["learner"]["name"]))
        settings = self.settings(learner, dict(_flat(tables)))
        added = self.added.get(EVERY_LEARNER, {}) | self.added.get(learner, {})
        return _nested({**added, **settings, "learner.name": learner})

    def words(self, text: str) -> str:
        """A title or a description with its replacements."""
        for old, new in self.text.items():
            text = text.replace(old, new)
        return text


def read_renames(path: Path) -> Renames:
    """Renames from a TOML file, with a table for each attribute of `Renames`."""
    with problems_in(path):
        return from_dict(Renames, read_toml(path))


def renamed(results: Results, renames: Renames) -> Results:
    """The results with new names, and with the fingerprints of the current code.

    The name of a cell is computed from the settings that it was run with, so the current code finds it as finished
    only if it would use the same settings. Without digests of the data, names are kept.
    """
    experiment = _experiment(results.experiment, renames)
    cells = {cell: _cell(cell, renames) for cell in results.planned}
    finished = {
        cells[cell]: replace(result, settings=renames.all_settings(result.settings))
        for cell, result in results.cells.items()
    }
    names = {_cell(cell, renames): name for cell, name in results.description.names.items()}
    if "digests" in results.data:
        names = {cell: _name(cell, name, results, experiment, finished) for cell, name in names.items()}
    data = dict(results.data)
    if "command" in data:
        data["command"] = _command(str(data["command"]), renames)
    return Results(
        Description(experiment, data, results.versions, names),
        finished,
        {cells[cell]: error for cell, error in results.failed.items()},
        tuple(cells[cell] for cell in results.missing),
    )


def _name(cell: Cell, old: str, results: Results, experiment: Experiment, finished: Mapping[Cell, CellResult]) -> str:
    settings = finished[cell].settings if cell in finished else None
    try:
        return fingerprinted_name(experiment, cell, digests_from(results.data["digests"]), settings)
    except InputError:
        return old  # its learner or click model is not installed, or has other settings


def _experiment(experiment: Experiment, renames: Renames) -> Experiment:
    return replace(
        experiment,
        title=renames.words(experiment.title),
        about=renames.words(experiment.about),
        grid=tuple(_grid(grid, renames) for grid in experiment.grid),
        training={
            name.removeprefix("training."): value
            for name, value in renames.settings(
                EVERY_LEARNER, {f"training.{name}": value for name, value in experiment.training.items()}
            ).items()
        },
        method={renames.method.get(name, name): _method(m, renames) for name, m in experiment.method.items()},
        report=_layout(experiment.report, renames),
    )


def _grid(grid: Grid, renames: Renames) -> Grid:
    methods = tuple(renames.method.get(name, name) for name in grid.method)
    return replace(grid, method=methods, title=renames.words(grid.title))


def _method(method: Method, renames: Renames) -> Method:
    learner = renames.learner.get(method.learner, method.learner)
    sweep = {
        name: values if isinstance(values, tuple) else (values,)
        for name, values in renames.settings(learner, method.sweep).items()
    }
    return replace(
        method,
        learner=learner,
        settings=renames.settings(learner, method.settings),
        sweep=sweep,
        swept_from=renames.method.get(method.swept_from, method.swept_from),
    )


def _layout(layout: Layout, renames: Renames) -> Layout:
    return replace(
        layout,
        baselines=layout.baselines and tuple(renames.method.get(name, name) for name in layout.baselines),
        paper_names={renames.method.get(name, name): paper for name, paper in layout.paper_names.items()},
    )


def _cell(cell: Cell, renames: Renames) -> Cell:
    return replace(cell, method=renames.method.get(cell.method, cell.method))


def _command(command: str, renames: Renames) -> str:
    """The command that was typed, with the new names in its conditions on cells."""
    for old, new in renames.method.items():
        command = re.sub(rf"\bmethod={re.escape(old)}(?=[,'\"\s]|$)", f"method={new}".replace("\\", r"\\"), command)
    return command


def _new_value(value: Any, new: Mapping[str, Any]) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(_new_value(item, new) for item in value)
    return new.get(value, value) if isinstance(value, str) else value


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The entries of nested tables by dotted name; an empty table is an entry."""
    for key, value in table.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for name, value in flat.items():
        *tables, last = name.split(".")
        table = nested
        for key in tables:
            table = table.setdefault(key, {})
        table[last] = value
    return nested
