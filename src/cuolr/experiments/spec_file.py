"""An experiment's file, read and checked: a mistake in it is told before anything is run."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from cuolr.clicks.click_model import click_model_from
from cuolr.config import from_dict, read_toml, to_dict
from cuolr.errors import InputError, problems_in
from cuolr.evaluation.measures import Measure
from cuolr.experiments.spec import YARDSTICKS, Experiment, Logging, Method, oracle_settings
from cuolr.registry import unknown_name
from cuolr.training.base_learner import LEARNERS
from cuolr.training.presets.configure import configure
from cuolr.training.training_config import TrainingConfig

BUILT_IN: Mapping[str, Path] = {path.stem: path for path in (Path(__file__).parent / "built_in").glob("*.toml")}

# Settings that a file cannot have, and what says them instead.
BY_CELL = {
    "training.seed": "first_seed",
    "learner.threads": "--jobs",
    "seed": "first_seed",
    "threads": "--jobs",
}


def read_experiment(name: str) -> Experiment:
    """The experiment of a built-in name or of a file."""
    if name in BUILT_IN:
        return parse_experiment(read_toml(BUILT_IN[name]), name)
    if not Path(name).is_file():
        raise unknown_name("experiment", name, BUILT_IN)
    return parse_experiment(read_toml(Path(name)), name)


def parse_experiment(table: Mapping[str, Any], where: str = "experiment") -> Experiment:
    """The experiment that a table describes, with its sweeps written out and everything in it checked.

    Args:
        table: As in the file.
        where: Its name, for messages.
    """
    with problems_in(where):
        experiment = _without_sweeps(from_dict(Experiment, table))
        check(experiment)
    return experiment


def check(experiment: Experiment) -> None:
    """Whether all that an experiment says can be run; all problems are told together."""
    grids, measures = experiment.grid, (*experiment.measures, experiment.validation)
    used = {name for grid in grids for name in grid.click_model} - experiment.click_model.keys()
    checks: list[Callable[[], object]] = [
        partial(_check_numbers, experiment),
        *(partial(_check_measure, measure) for measure in dict.fromkeys(measures) if measure != "log"),
        partial(_check_training, experiment.training),
        *(partial(_check_method, experiment, name, method) for name, method in experiment.method.items()),
        *(partial(_check_click_model, name, table) for name, table in experiment.click_model.items()),
        *(partial(_check_logging, name, logging) for name, logging in experiment.logging.items()),
        *(partial(experiment.method_named, name) for grid in grids for name in grid.method),
        *(partial(experiment.click_model_named, name) for name in sorted(used)),
        *(partial(experiment.logging_named, name) for grid in grids for name in grid.logging),
        partial(_check_baselines, experiment),
    ]
    problems: list[str] = []
    for look in checks:
        try:
            look()
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(list(dict.fromkeys(problems)))


def _check_numbers(experiment: Experiment) -> None:
    least = {"seeds": 1, "first_seed": 0, "k": 1, "randomised_lists": 1}
    problems = [
        f"setting '{name}': expected a whole number from {minimum} up, found {getattr(experiment, name)}"
        for name, minimum in least.items()
        if getattr(experiment, name) < minimum
    ]
    lists = {"measures": experiment.measures, "grid": experiment.grid}
    for number, grid in enumerate(experiment.grid):
        lists |= {f"grid[{number}].{name}": getattr(grid, name) for name in ("method", "click_model", "logging")}
        lists[f"grid[{number}].sessions_per_query"] = grid.sessions_per_query
        problems += [
            f"setting 'grid[{number}].sessions_per_query': expected whole numbers from 1 up, found {sessions}"
            for sessions in grid.sessions_per_query
            if sessions < 1
        ]
    if len(set(experiment.measures)) < len(experiment.measures):
        problems.append(f"setting 'measures': expected each once, found {', '.join(experiment.measures)}")
    problems += [f"setting '{name}': expected at least one, found none" for name, values in lists.items() if not values]
    if problems:
        raise InputError(problems)


def _check_measure(measure: str) -> None:
    if (written := str(Measure.parse(measure))) != measure:
        raise InputError(f"measure '{measure}': expected it to be written {written}")


def _check_training(training: Mapping[str, Any]) -> None:
    _refuse_what_cells_set(f"training.{name}" for name in training)
    from_dict(TrainingConfig, training, "training")


def _check_method(experiment: Experiment, name: str, method: Method) -> None:
    with problems_in(f"method '{name}'"):
        _refuse_what_cells_set(method.settings)
        if method.learner not in (*YARDSTICKS, *LEARNERS.names()):
            raise unknown_name("learner", method.learner, (*YARDSTICKS, *LEARNERS.names()))
        if method.learner not in YARDSTICKS:
            config = configure(method.learner, method.preset, method.settings)
            if method.propensities is not None:
                experiment.click_model_named(method.propensities)
                if not config.learner_class.takes_propensities:
                    raise InputError(f"propensities: expected a learner that takes them, found {method.learner}")
            return
        if method.propensities is not None or method.preset != Method.preset:
            raise InputError(f"preset and propensities are for learners alone, found {method.learner}")
        if method.learner == "oracle":
            values = to_dict(oracle_settings(method, seed=0))
            if problems := [
                f"setting '{name}': expected above 0, found {values[name]}"
                for name in method.settings
                if not values[name] > 0
            ]:
                raise InputError(problems)
        elif method.settings:
            raise InputError(f"{method.learner} has no settings, found {', '.join(method.settings)}")


def _refuse_what_cells_set(settings: Iterable[str]) -> None:
    if problems := [f"setting '{name}': comes from {BY_CELL[name]}" for name in settings if name in BY_CELL]:
        raise InputError(problems)


def _check_click_model(name: str, table: Mapping[str, Any]) -> None:
    with problems_in(f"click_model '{name}'"):
        click_model_from(table)


def _check_logging(name: str, logging: Logging) -> None:
    if not 0 < logging.fraction <= 1:
        raise InputError(f"logging '{name}': fraction: expected above 0 and at most 1, found {logging.fraction}")


def _check_baselines(experiment: Experiment) -> None:
    swept = {name for method in experiment.method.values() if (name := method.swept_from)}
    known = {*experiment.method, *(name for grid in experiment.grid for name in grid.method)}
    known |= {f"{name}(best)" for name in swept}
    for name in experiment.report.baselines or ():
        if name not in known:
            raise unknown_name("method in report.baselines", name, known)


def _without_sweeps(experiment: Experiment) -> Experiment:
    """The experiment with a method for each value of a sweep, in its place in the grids."""
    variants = {name: dict(_swept(name, method)) for name, method in experiment.method.items()}
    methods: dict[str, Method] = {}
    for swept in variants.values():
        if twice := methods.keys() & swept.keys():
            raise InputError(f"method '{', '.join(sorted(twice))}': there is one of that name, and one from a sweep")
        methods |= swept
    grids = tuple(
        dataclasses.replace(grid, method=tuple(v for name in grid.method for v in variants.get(name, [name])))
        for grid in experiment.grid
    )
    return dataclasses.replace(experiment, method=methods, grid=grids)


def _swept(name: str, method: Method) -> Iterator[tuple[str, Method]]:
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
        settings = {**method.settings, setting: value}
        yield (
            f"{name} {value}",
            Method(method.learner, method.preset, settings, method.propensities, {setting: (value,)}, swept_from=name),
        )
