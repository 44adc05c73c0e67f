"""Tuning: an experiment whose methods are trials, each a learner with different settings, scored by validation."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import tomli_w

from cuolr.config import check_ranges, read_toml
from cuolr.errors import InputError, problems_in
from cuolr.evaluation.measures import Measure
from cuolr.experiments.results import CellResult, Results
from cuolr.experiments.results_folder import read_results
from cuolr.experiments.run_cells import RunSummary
from cuolr.experiments.spec import Cell, Experiment, Grid, Method
from cuolr.experiments.spec_file import check
from cuolr.experiments.tuning_settings import Search, TuningRuns
from cuolr.files import atomic_file
from cuolr.registry import unknown_name
from cuolr.training.base_learner import LEARNERS, SearchSpace
from cuolr.training.presets.configure import configure

Spaces: TypeAlias = Mapping[str, SearchSpace]

BEST = "best.toml"


@dataclass(frozen=True)
class Trial:
    """One combination of settings of a learner.

    Attributes:
        learner: Registered name.
        settings: Settings that differ from the default preset.
        scores: The validation score of each cell.
    """

    learner: str
    settings: Mapping[str, Any]
    scores: Mapping[Cell, float]

    @property
    def score(self) -> float:
        """The mean over the runs."""
        return float(np.mean(list(self.scores.values())))

    @property
    def settings_text(self) -> str:
        """The settings in one line."""
        return ", ".join(f"{name}={value}" for name, value in self.settings.items()) or "(preset)"

    def as_dict(self) -> dict[str, Any]:
        """The trial in JSON types."""
        runs = {str(cell): score for cell, score in self.scores.items()}
        return {"learner": self.learner, "score": self.score, "settings": dict(self.settings), "runs": runs}


@dataclass(frozen=True)
class Tuned:
    """The outcome of tuning.

    Attributes:
        trials: Finished trials, best first within each learner.
        best: File with the best settings of each learner.
        run: The outcome of the run.
    """

    trials: Sequence[Trial]
    best: Path
    run: RunSummary


def tune(experiment: Experiment, run: Callable[[Experiment], RunSummary]) -> Tuned:
    """Run all trials, and write the best settings of each learner.

    Args:
        experiment: The experiment returned by `tuning`.
        run: Runs an experiment.
    """
    summary = run(experiment)
    trials = trials_of(read_results(summary.out))
    if not trials:
        summary.raise_failures()
    best = summary.out / BEST
    with atomic_file(best) as unfinished:
        unfinished.write_text(best_toml(trials), encoding="utf-8")
    return Tuned(trials, best, summary)


def base_experiment(learners: Sequence[str], runs: TuningRuns) -> Experiment:
    """The experiment of a tuning, without its trials."""
    measure = runs.validation if runs.validation == "log" else str(Measure.parse(runs.validation))
    return Experiment(
        title=f"Tuning {', '.join(learners)}",
        grid=(Grid((), runs.click_models, sessions_per_query=(runs.sessions_per_query,)),),
        measures=("ndcg@10",) if measure == "log" else tuple(dict.fromkeys((measure, "ndcg@10"))),
        validation=measure,
        split="vali",
        seeds=runs.seeds,
        training={"steps": runs.steps, "validate_every": 25, "patience": 8},
    )


def search_spaces(path: Path | None = None) -> Spaces:
    """The search spaces in a TOML file; without a file, those of the learners."""
    if path is not None:
        return _read_spaces(path)
    return {name: space for name in LEARNERS.names() if (space := LEARNERS.get(name).search_space)}


def _read_spaces(path: Path) -> Spaces:
    """A table for each learner, a list of values for each setting."""
    spaces = read_toml(path)
    for learner, space in spaces.items():
        for setting, values in space.items() if isinstance(space, dict) else [(learner, None)]:
            if not isinstance(values, list) or not values:
                raise InputError(f"{path}: {learner}, {setting}: expected a list of values to try, found {values!r}")
    return spaces


def tuning(learners: Sequence[str], spaces: Spaces, search: Search, base: Experiment) -> Experiment:
    """The experiment that tries settings of each learner, with the same number of trials for each.

    Args:
        learners: Registered names.
        spaces: The search space of each learner.
        search: How to search. The trials of a learner depend only on its own space and the seed.
        base: Everything else: click models, sessions, training. The trials replace the methods of its grids.
    """
    check_ranges(search)
    if not learners:
        raise InputError(f"learners: expected one or more of {', '.join(sorted(spaces))}, found none")
    methods: dict[str, Method] = {}
    for learner in learners:
        if learner not in spaces:
            raise unknown_name("learner to tune", learner, spaces)
        for number, settings in enumerate(_settings(learner, spaces[learner], search, base.training), start=1):
            methods[f"{learner}, trial {number}"] = Method(learner, settings=settings)
    experiment = replace(base, method=methods, grid=tuple(replace(grid, method=tuple(methods)) for grid in base.grid))
    check(experiment)
    return experiment


def exhausted(experiment: Experiment, search: Search) -> Iterator[str]:
    """A message for each learner whose space has fewer combinations than trials."""
    for learner, number in Counter(method.learner for method in experiment.method.values()).items():
        if number < search.trials:
            yield f"{learner}: only {number} trials, because its search space has no more combinations"


def _settings(learner: str, space: SearchSpace, search: Search, training: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The preset, {}, and combinations that differ from it."""
    combinations = [dict(zip(space, values, strict=True)) for values in itertools.product(*space.values())]
    if search.search == "random":
        combinations = [combinations[i] for i in np.random.default_rng(search.seed).permutation(len(combinations))]
    common = {f"training.{name}": value for name, value in training.items()}
    with problems_in(f"search space of {learner}"):
        preset = configure(learner, settings=common)
        others = [settings for settings in combinations if configure(learner, settings=common | settings) != preset]
    if search.search == "grid" and len(others) + 1 > search.trials:
        raise InputError(
            f"search: the grid of {learner} and the preset are {len(others) + 1} trials, but at most {search.trials} "
            "are allowed; allow more trials, or search at random"
        )
    return [{}, *others[: search.trials - 1]]


def trials_of(results: Results) -> list[Trial]:
    """The finished trials of a tuning, best first within each learner."""
    scores: dict[str, dict[Cell, float]] = {}
    for cell, result in results.cells.items():
        scores.setdefault(cell.method, {})[cell] = score_of(result)
    runs = max((len(of_method) for of_method in scores.values()), default=0)
    trials = [
        Trial(method.learner, method.settings, scores[name])
        for name, method in results.experiment.method.items()
        if len(scores.get(name, ())) == runs  # means over fewer runs are not comparable
    ]
    learners = list(dict.fromkeys(trial.learner for trial in trials))
    return sorted(trials, key=lambda trial: (learners.index(trial.learner), -trial.score))


def score_of(result: CellResult) -> float:
    """The score of a trial in one run: the best validation."""
    return float(result.notes["validation"])


def best_toml(trials: Sequence[Trial]) -> str:
    """The best settings of each learner, as methods of an experiment's file."""
    best: dict[str, Trial] = {}
    for trial in trials:
        best.setdefault(trial.learner, trial)
    methods = {name: {"learner": name, "settings": dict(trial.settings)} for name, trial in best.items()}
    return tomli_w.dumps({"method": methods})
