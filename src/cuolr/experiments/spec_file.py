"""An experiment's file, read and checked before anything is run."""

import dataclasses
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from cuolr.clicks.click_model import click_model_from
from cuolr.config import check_ranges, from_dict, read_toml, to_dict
from cuolr.errors import InputError, problems_in
from cuolr.evaluation.measures import Measure
from cuolr.experiments.built_in import BUILT_IN
from cuolr.experiments.spec import REFERENCE_RANKERS, Experiment, Method, oracle_settings
from cuolr.registry import unknown_name
from cuolr.training.base_learner import LEARNERS
from cuolr.training.presets.configure import configure
from cuolr.training.training_config import TrainingConfig

# What a terminal obeys, and no plot can hold; not tabs and new lines.
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
# Settings that each cell determines, and what to set instead.
SET_BY_CELL = {
    "training.seed": "first_seed",
    "learner.threads": "the number of jobs",
    "seed": "first_seed",
    "threads": "the number of jobs",
}


def read_experiment(name: str) -> Experiment:
    """The built-in experiment of that name, or the one in a file."""
    if name in BUILT_IN:
        return parse_experiment(read_toml(BUILT_IN[name]), name)
    if not Path(name).is_file():
        raise unknown_name("experiment", name, BUILT_IN)
    return parse_experiment(read_toml(Path(name)), name)


def parse_experiment(table: Mapping[str, Any], where: str = "experiment") -> Experiment:
    """The experiment that a table describes, with its sweeps expanded, and checked.

    Args:
        table: As in the file.
        where: Name of the file, for messages.
    """
    with problems_in(where):
        experiment = _without_sweeps(from_dict(Experiment, table))
        check(experiment)
    return experiment


def parse_saved_experiment(table: Mapping[str, Any], where: str) -> Experiment:
    """The experiment of saved results. Its learners and click models need not be installed.

    Args:
        table: As `to_dict` gives it for a `self_contained` experiment.
        where: Name of the file, for messages.
    """
    with problems_in(where):
        experiment = from_dict(Experiment, table)
        if experiment.report.baselines is None:
            raise InputError("setting 'report.baselines' is missing; expected a list of methods")
        _check_known("method", experiment.methods, experiment.method)
        _check_known("click_model", (c for grid in experiment.grid for c in grid.click_model), experiment.click_model)
        check_ranges(experiment)
        _check_texts(experiment)
    return experiment


def _check_known(kind: str, names: Iterable[str], known: Mapping[str, object]) -> None:
    for name in names:
        if name not in known:
            raise unknown_name(kind, name, known)


def check(experiment: Experiment) -> None:
    """Raise if an experiment cannot be run; reports all problems together."""
    grids, measures = experiment.grid, (*experiment.measures, experiment.validation)
    used = {name for grid in grids for name in grid.click_model} - experiment.click_model.keys()
    checks: list[Callable[[], object]] = [
        partial(check_ranges, experiment),
        partial(_check_lists, experiment),
        partial(_check_texts, experiment),
        *(partial(_check_measure, measure) for measure in dict.fromkeys(measures) if measure != "log"),
        partial(_check_training, experiment.training),
        *(partial(_check_method, experiment, name, method) for name, method in experiment.method.items()),
        *(partial(_check_click_model, name, table) for name, table in experiment.click_model.items()),
        *(partial(experiment.method_named, name) for name in experiment.methods),
        *(partial(experiment.click_model_named, name) for name in sorted(used)),
        *(partial(experiment.logging_named, name) for grid in grids for name in grid.logging),
        partial(_check_baselines, experiment),
    ]
    problems: list[str] = []
    for check_one in checks:
        try:
            check_one()
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(list(dict.fromkeys(problems)))


def _check_texts(experiment: Experiment) -> None:
    """Titles and names go to tables, pages, plots and the terminal."""
    for text in _texts(to_dict(experiment)):
        if CONTROL.search(text):
            raise InputError(f"text {text!r:.200}: expected no control characters")


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple | Mapping):
        for item in itertools.chain(value, value.values() if isinstance(value, Mapping) else ()):
            yield from _texts(item)


def _check_lists(experiment: Experiment) -> None:
    lists: dict[str, tuple[object, ...]] = {"measures": experiment.measures, "grid": experiment.grid}
    for number, grid in enumerate(experiment.grid):
        axes = ("method", "click_model", "logging", "sessions_per_query")
        lists |= {f"grid[{number}].{axis}": getattr(grid, axis) for axis in axes}
    problems = [f"setting '{name}': expected at least one, found none" for name, values in lists.items() if not values]
    if len(set(experiment.measures)) < len(experiment.measures):
        problems.append(f"setting 'measures': expected each once, found {', '.join(experiment.measures)}")
    if problems:
        raise InputError(problems)


def _check_measure(measure: str) -> None:
    if (written := str(Measure.parse(measure))) != measure:
        raise InputError(f"measure '{measure}': expected the spelling {written}")


def _check_training(training: Mapping[str, Any]) -> None:
    _refuse_settings_of_cells(f"training.{name}" for name in training)
    from_dict(TrainingConfig, training, "training")


def _check_method(experiment: Experiment, name: str, method: Method) -> None:
    with problems_in(f"method '{name}'"):
        _refuse_settings_of_cells(method.settings)
        if method.is_reference:
            _check_reference(method)
            return
        if method.learner not in LEARNERS.names():
            raise unknown_name("learner", method.learner, (*REFERENCE_RANKERS, *LEARNERS.names()))
        configure(method.learner, method.preset, method.settings)
        if method.propensities is not None:
            experiment.click_model_named(method.propensities)
            if not LEARNERS.get(method.learner).takes_propensities:
                raise InputError(f"propensities: {method.learner} does not use them; remove the setting")


def _check_reference(method: Method) -> None:
    if method.propensities is not None or method.preset != Method.preset:
        raise InputError(f"preset and propensities do not apply to {method.learner}; remove them")
    if method.learner == "oracle":
        oracle_settings(method, seed=0)
    elif method.settings:
        raise InputError(f"{method.learner} has no settings, found {', '.join(method.settings)}")


def _refuse_settings_of_cells(settings: Iterable[str]) -> None:
    if problems := [f"setting '{name}': set {SET_BY_CELL[name]} instead" for name in settings if name in SET_BY_CELL]:
        raise InputError(problems)


def _check_click_model(name: str, table: Mapping[str, Any]) -> None:
    with problems_in(f"click_model '{name}'"):
        click_model_from(table)


def _check_baselines(experiment: Experiment) -> None:
    swept = {name for method in experiment.method.values() if (name := method.swept_from)}
    known = {*experiment.method, *experiment.methods, *(f"{name}(best)" for name in swept)}
    for name in experiment.report.baselines or ():
        if name not in known:
            raise unknown_name("method in report.baselines", name, known)
    for pair in experiment.report.differences.items():
        for name in pair:
            if name not in experiment.methods:
                raise unknown_name("method in report.differences", name, experiment.methods)


def _without_sweeps(experiment: Experiment) -> Experiment:
    """The experiment with sweeps replaced by a method for each value, in its grids as well."""
    variants = {name: dict(_expand(name, method)) for name, method in experiment.method.items()}
    methods: dict[str, Method] = {}
    for expanded in variants.values():
        if twice := methods.keys() & expanded.keys():
            raise InputError(f"method '{', '.join(sorted(twice))}': the name is taken by a value of a sweep")
        methods |= expanded
    grids = tuple(
        dataclasses.replace(grid, method=tuple(v for name in grid.method for v in variants.get(name, [name])))
        for grid in experiment.grid
    )
    return dataclasses.replace(experiment, method=methods, grid=grids)


def _expand(name: str, method: Method) -> Iterator[tuple[str, Method]]:
    expected = "expected one setting with a list of values"
    if len(method.sweep) > 1:
        raise InputError(f"method '{name}': sweep: {expected}, found {', '.join(method.sweep)}")
    if not all(method.sweep.values()) or (method.swept_from and not method.sweep):
        raise InputError(f"method '{name}': sweep: {expected}, found none")
    if not method.sweep or method.swept_from:
        yield name, method
        return
    ((setting, values),) = method.sweep.items()
    if any(value in values[:place] for place, value in enumerate(values)):
        raise InputError(f"method '{name}': sweep: expected each value of {setting} once, found {list(values)}")
    for value in values:
        yield (
            f"{name} {value}",
            dataclasses.replace(
                method, settings={**method.settings, setting: value}, sweep={setting: (value,)}, swept_from=name
            ),
        )
