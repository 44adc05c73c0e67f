"""Conditions on the cells of an experiment, such as `click_model=pbm,learner=cql`."""

import dataclasses
from collections.abc import Mapping, Sequence

from cuolr.errors import InputError
from cuolr.experiments.spec import Cell, Experiment
from cuolr.registry import unknown_name

# The names that a condition can have.
AXES = (*(field.name for field in dataclasses.fields(Cell)), "learner", "encoder")


def select(cells: Sequence[Cell], experiment: Experiment, only: str) -> list[Cell]:
    """The cells that meet a condition. A name given twice accepts either value.

    Reference rankers are kept, because reports compare with them, unless the condition is on the method or learner.
    """
    described = [(cell, _axes(cell, experiment)) for cell in cells]
    known = {axis: {axes[axis] for _, axes in described} - {""} for axis in AXES}
    wanted = {
        axis: {_spelled(axis, value, known[axis]) for value in values}
        for axis, values in _conditions(only, known).items()
    }
    selected = [
        cell
        for cell, axes in described
        if all(axes[axis] in values or (not axes[axis] and axis != "encoder") for axis, values in wanted.items())
    ]
    if not selected:
        raise InputError(f"only: no cell of the experiment meets '{only}'; give fewer conditions")
    return selected


def _conditions(only: str, known: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """The accepted values of each axis. A value may contain commas, such as the method `SAC, shown`."""
    parts: list[str] = []
    for part in filter(str.strip, only.split(",")):
        axis, equals, begun = parts[-1].partition("=") if parts else ("", "", "")
        names = known.get(axis.strip(), ()) if equals else ()
        if any(f"{name},".startswith(f"{begun},{part}".strip() + ",") for name in names):
            parts[-1] += f",{part}"
        else:
            parts.append(part)
    wanted: dict[str, set[str]] = {}
    for part in parts:
        axis, equals, value = map(str.strip, part.partition("="))
        if not equals:
            raise InputError(f"only: expected <name>=<value>, such as click_model=pbm, found '{part.strip()}'")
        if axis not in known:
            raise unknown_name("name in a condition on cells", axis, known)
        if not known[axis]:
            raise InputError(f"only: {part.strip()}: no cell of this experiment on this data has a {axis}")
        wanted.setdefault(axis, set()).add(value)
    return wanted


def _spelled(axis: str, value: str, known: set[str]) -> str:
    """A value in the spelling of the experiment, ignoring case."""
    alike = [name for name in known if name.casefold() == value.casefold()]
    if value in known or len(alike) == 1:
        return value if value in known else alike[0]
    raise unknown_name(f"{axis} in a condition on cells", value, known)


def _axes(cell: Cell, experiment: Experiment) -> dict[str, str]:
    """The cell's value of each of `AXES`; "" = none."""
    config = experiment.config_of(cell)
    values = {field.name: str(getattr(cell, field.name) or "") for field in dataclasses.fields(cell)}
    return {
        **values,
        "seed": str(cell.seed),
        "learner": experiment.method_named(cell.method).learner,
        "encoder": getattr(config.learner_config, "encoder", "") if config else "",
    }
