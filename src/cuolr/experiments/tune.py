"""Tuning: an experiment whose methods are trials, a learner with some settings each, measured on validation queries."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import tomli_w

from cuolr.config import Range, check_arguments, read_toml
from cuolr.errors import InputError, problems_in
from cuolr.experiments.results import CellResult, Results
from cuolr.experiments.spec import Cell, Experiment, Method
from cuolr.experiments.spec_file import check
from cuolr.registry import unknown_name
from cuolr.training.presets.configure import configure

# By learner: the values to try of each setting.
Spaces: TypeAlias = Mapping[str, Mapping[str, Sequence[Any]]]
Search = Literal["random", "grid"]

SPACES = Path(__file__).parent / "spaces" / "default.toml"


@dataclass(frozen=True)
class Trial:
    """Settings that were tried.

    Attributes:
        learner: Of what.
        settings: What differs from the preset; the first trial of each learner is the preset itself.
        scores: By run: the validation score of each cell.
    """

    learner: str
    settings: Mapping[str, Any]
    scores: Mapping[Cell, float]

    @property
    def score(self) -> float:
        """The mean over the runs."""
        return float(np.mean(list(self.scores.values())))


def read_spaces(path: Path = SPACES) -> Spaces:
    """The values to try, from a TOML file: a table for each learner, a list for each setting."""
    spaces = read_toml(path)
    for learner, space in spaces.items():
        for setting, values in space.items() if isinstance(space, dict) else [(learner, None)]:
            if not isinstance(values, list) or not values:
                raise InputError(f"{path}: {learner}, {setting}: expected a list of values to try, found {values!r}")
    return spaces


def tuning(
    learners: Sequence[str],
    spaces: Spaces,
    trials: int,
    search: Search,
    seed: int,
    base: Experiment,
) -> Experiment:
    """The experiment that tries settings of each learner, the same number of each.

    Args:
        learners: Registered names.
        spaces: What to try of each.
        trials: Of each learner; the first is the preset as it is.
        search: At random without repeats, or all combinations, of which there must not be more than `trials` allows.
        seed: Of the random search; each learner's trials depend on its own space alone.
        base: Everything else: click models, sessions, training; the methods of its grids are replaced by the trials.
    """
    check_arguments(**{"--trials": (trials, Range(1)), "--seed": (seed, Range(0))})
    if not learners:
        raise InputError(f"learners: expected one or more of {', '.join(sorted(spaces))}, found none")
    methods: dict[str, Method] = {}
    for learner in learners:
        if learner not in spaces:
            raise unknown_name("learner to tune", learner, spaces)
        tried = _settings(learner, spaces[learner], trials, search, seed, base.training)
        for number, settings in enumerate(tried, start=1):
            methods[f"{learner}, trial {number}"] = Method(learner, settings=settings)
    experiment = replace(base, method=methods, grid=tuple(replace(grid, method=tuple(methods)) for grid in base.grid))
    check(experiment)
    return experiment


def _settings(
    learner: str,
    space: Mapping[str, Sequence[Any]],
    trials: int,
    search: Search,
    seed: int,
    training: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """The preset, which is {}, and combinations that differ from it."""
    combinations = [dict(zip(space, values, strict=True)) for values in itertools.product(*space.values())]
    if search == "random":
        combinations = [combinations[i] for i in np.random.default_rng(seed).permutation(len(combinations))]
    common = {f"training.{name}": value for name, value in training.items()}
    with problems_in(f"what to try of {learner}"):
        preset = configure(learner, settings=common)
        others = [settings for settings in combinations if configure(learner, settings=common | settings) != preset]
    if search == "grid" and len(others) + 1 > trials:
        raise InputError(
            f"--search grid: {learner} has {len(others)} combinations, with the preset {len(others) + 1} trials; "
            f"expected at most --trials {trials}"
        )
    return [{}, *others[: trials - 1]]


def trials_of(results: Results) -> list[Trial]:
    """The trials of a tuning that are finished, best first within each learner."""
    found: dict[str, dict[Cell, float]] = {}
    for cell, result in results.cells.items():
        found.setdefault(cell.method, {})[cell] = score_of(result)
    runs = max((len(scores) for scores in found.values()), default=0)
    trials = [
        Trial(method.learner, method.settings, found[name])
        for name, method in results.experiment.method.items()
        if len(found.get(name, ())) == runs  # half a trial says nothing
    ]
    learners = list(dict.fromkeys(trial.learner for trial in trials))
    return sorted(trials, key=lambda trial: (learners.index(trial.learner), -trial.score))


def score_of(result: CellResult) -> float:
    """What a trial is judged by: the best validation score of the run."""
    return float(result.notes["validation"])


def best_toml(trials: Sequence[Trial]) -> str:
    """The best settings of each learner, as methods of an experiment's file."""
    best: dict[str, Trial] = {}
    for trial in trials:
        best.setdefault(trial.learner, trial)
    methods = {name: {"learner": name, "settings": dict(trial.settings)} for name, trial in best.items()}
    return tomli_w.dumps({"method": methods})
