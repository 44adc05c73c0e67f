"""What the results of an experiment say: means, tests against the best baseline, and the gap closed.

The unit of a test is the query. Where a query was run with several seeds its value is the mean over them; queries of
different folds are different queries.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from cuolr.evaluation.significance import Comparison, compare, holm, stars
from cuolr.experiments.report.gap import SIGNIFICANT, GapClosed, gap_closed
from cuolr.experiments.report.paper import (
    DATASETS,
    USUAL_LOGGING,
    PaperNumber,
    Place,
    paper_gap_closed,
    paper_logging,
    paper_number,
)
from cuolr.experiments.report.settings import Columns, Setting, columns_of, settings_of
from cuolr.experiments.results import CellResult, Results
from cuolr.experiments.spec import WITHOUT_LOG, YARDSTICKS, Cell, Experiment
from cuolr.types import Doubles

# A fold and a seed.
Run: TypeAlias = tuple[int, int]

# The tests are t-tests; random signs and samples are for the interval of a difference only.
RESAMPLES = 999


@dataclass(frozen=True)
class Entry:
    """A method in a setting.

    Attributes:
        results: Of the runs that finished.
        failed: The runs that failed.
        missing: The runs that are still to be made.
    """

    results: Mapping[Run, CellResult]
    failed: tuple[Run, ...] = ()
    missing: tuple[Run, ...] = ()

    @property
    def planned(self) -> int:
        """How many runs there are to be."""
        return len(self.results) + len(self.failed) + len(self.missing)

    def mean(self, measure: str) -> float:
        """Over the runs that finished."""
        return float(np.mean([result.measures[measure] for result in self.results.values()]))

    def deviation(self, measure: str) -> float | None:
        """The standard deviation over the runs that finished, where there are two or more."""
        values = [result.measures[measure] for result in self.results.values()]
        return float(np.std(values, ddof=1)) if len(values) > 1 else None

    def per_query(self, measure: str, runs: Sequence[Run]) -> list[Doubles]:
        """For each fold of these runs, [n_queries] the mean over seeds; NaN = the query does not count."""
        return [
            np.mean([self.results[run].per_query[measure] for run in runs if run[0] == fold], axis=0)
            for fold in sorted({fold for fold, _ in runs})
        ]


@dataclass(frozen=True)
class Score:
    """What is printed for a method in a setting, by one measure.

    Attributes:
        mean: Over the runs that finished; None where none did.
        deviation: The standard deviation over them, where there are two or more.
        finished: How many runs did.
        planned: How many runs there are to be.
        failed: How many runs failed.
        best: Whether no other learner in the setting has a higher mean over as many runs.
        against: The best baseline, where the method is tested against it.
        comparison: With that baseline, over queries.
        p_value: Of the paired t-test, corrected by Holm's method over the table of the measure.
        gap: The gap closed; None where ORACLE is not significantly above LOGGING, or something is missing.
        paper: The paper's number on the same data set.
        paper_gaps: The gap closed by the paper's numbers, by its data set.
    """

    mean: float | None
    deviation: float | None
    finished: int
    planned: int
    failed: int
    best: bool = False
    against: str = ""
    comparison: Comparison | None = None
    p_value: float | None = None
    gap: GapClosed | None = None
    paper: PaperNumber | None = None
    paper_gaps: Mapping[str, float] | None = None

    @property
    def mark(self) -> str:
        """`*` or `**` for significantly better than the best baseline, `†` for significantly worse."""
        if self.p_value is None or self.comparison is None:
            return ""
        if self.comparison.difference > 0:
            return stars(self.p_value)
        return "†" if self.p_value < SIGNIFICANT else ""


@dataclass(frozen=True)
class Table:
    """A table: methods by settings, for each measure.

    Attributes:
        columns: The settings, and what they are called.
        learners: The rows.
        contenders: Those that may lead: no single value of a sweep, where the best one was chosen on validation.
        yardsticks: The rows below them.
        scores: By method, setting and measure; no entry where the method is not run in the setting.
    """

    columns: Columns
    learners: tuple[str, ...]
    contenders: tuple[str, ...]
    yardsticks: tuple[str, ...]
    scores: Mapping[tuple[str, Setting, str], Score]

    def leader(self, setting: Setting, measure: str) -> str | None:
        """The contender with the highest mean over the most runs, where there are two or more to choose from."""
        scores = {m: s for m in self.contenders if (s := self.scores.get((m, setting, measure))) and s.finished}
        most = max((score.finished for score in scores.values()), default=0)
        means = {m: s.mean for m, s in scores.items() if s.mean is not None and s.finished == most}
        return max(means, key=lambda m: means[m]) if len(scores) > 1 else None


@dataclass(frozen=True)
class Summary:
    """All that a report shows.

    Attributes:
        results: What it was made from.
        main_measure: What the report opens with.
        entries: By method and setting.
        tables: One, or one for each value of what is not in the columns.
        chosen: For the best value of a sweep, by its name and setting: the method that was chosen on validation.
    """

    results: Results
    main_measure: str
    entries: Mapping[tuple[str, Setting], Entry]
    tables: tuple[Table, ...]
    chosen: Mapping[tuple[str, Setting], str]


def summarise(results: Results) -> Summary:
    """Compute all that the report shows: the runs and the columns of which something is there."""
    experiment = results.experiment
    methods = list(dict.fromkeys(name for grid in experiment.grid for name in grid.method))
    begun = replace(results, missing=_missing_of_begun(results))
    known = {*begun.cells, *begun.failed, *begun.missing}
    folds = sorted({cell.fold for cell in known} - {0})
    settings = settings_of([cell for cell in experiment.cells(folds) if cell in known])
    entries = {(name, s): entry for name in methods for s in settings if (entry := _entry(begun, name, s)).planned}
    chosen = _best_of_sweeps(experiment, methods, settings, entries)
    entries |= {key: entries[method, key[1]] for key, method in chosen.items()}
    tables = tuple(
        _table(results, columns, entries, list(dict.fromkeys(name for name, _ in chosen)))
        for columns in columns_of(experiment, settings)
    )
    measures = experiment.measures
    main = next((m for m in (experiment.validation, "ndcg@10") if m in measures), measures[0])
    return Summary(results, main, entries, tables, chosen)


def _missing_of_begun(results: Results) -> tuple[Cell, ...]:
    """The missing cells, but for those of folds, seeds and logs of which there is nothing yet."""
    there = [*results.cells, *results.failed]
    runs = {(cell.fold, cell.seed) for cell in there}
    logs = {_log(cell) for cell in there if cell.click_model}
    return tuple(
        cell
        for cell in results.missing
        if (not runs or (cell.fold, cell.seed) in runs) and (not logs or not cell.click_model or _log(cell) in logs)
    )


def _log(cell: Cell) -> tuple[str, str, int]:
    return cell.logging, cell.click_model, cell.sessions_per_query


def paper_name(experiment: Experiment, method: str) -> str:
    """What the paper calls a method."""
    return experiment.report.paper_names.get(method, method)


def _entry(results: Results, method: str, setting: Setting) -> Entry:
    ours = {
        cell: (cell.fold, cell.seed)
        for cell in (*results.cells, *results.failed, *results.missing)
        if cell.method == method and setting.includes(cell)
    }
    return Entry(
        {run: results.cells[cell] for cell, run in ours.items() if cell in results.cells},
        tuple(run for cell, run in ours.items() if cell in results.failed),
        tuple(run for cell, run in ours.items() if cell in results.missing),
    )


def _best_of_sweeps(
    experiment: Experiment,
    methods: Sequence[str],
    settings: Sequence[Setting],
    entries: Mapping[tuple[str, Setting], Entry],
) -> dict[tuple[str, Setting], str]:
    """For each sweep and setting, the method with the best mean validation score among those with the most runs."""
    chosen = {}
    families: dict[str, list[str]] = {}
    for method in methods:
        if family := experiment.method_named(method).swept_from:
            families.setdefault(family, []).append(method)
    for family, members in families.items():
        for setting in settings:
            found = {m: entries[m, setting].results for m in members if (m, setting) in entries}
            most = max(map(len, found.values()), default=0)
            scores = {
                m: np.mean([result.validations[result.best_step] for result in runs.values()])
                for m, runs in found.items()
                if runs and len(runs) == most and all(result.validations for result in runs.values())
            }
            if len(scores) > 1:
                chosen[f"{family}(best)", setting] = max(scores, key=lambda m: scores[m])
    return chosen


def _table(
    results: Results, columns: Columns, entries: Mapping[tuple[str, Setting], Entry], best_of_sweeps: Sequence[str]
) -> Table:
    experiment = results.experiment
    rows = (*columns.methods, *best_of_sweeps)
    shown = [method for method in rows if any((method, setting) in entries for setting in columns.settings)]
    yardsticks = tuple(m for m in shown if learner_of(experiment, m) in YARDSTICKS)
    learners = tuple(m for m in shown if m not in yardsticks)
    scores: dict[tuple[str, Setting, str], Score] = {}
    for measure in experiment.measures:
        found: dict[tuple[str, Setting], Score] = {}
        for setting in columns.settings:
            here = {m: entries[m, setting] for m in shown if (m, setting) in entries}
            found |= {(m, setting): s for m, s in _column(results, learners, here, setting, measure).items()}
        tested = [key for key, score in found.items() if score.comparison]
        corrected = holm([c.t_test for key in tested if (c := found[key].comparison)])
        for key, p_value in zip(tested, corrected, strict=True):
            found[key] = replace(found[key], p_value=p_value)
        scores |= {(method, setting, measure): score for (method, setting), score in found.items()}
    swept = {m for m in learners if learner_of(experiment, m) and experiment.method_named(m).swept_from}
    contenders = tuple(m for m in learners if m not in swept) if best_of_sweeps else learners
    return Table(columns, learners, contenders, yardsticks, scores)


def _column(
    results: Results, learners: Sequence[str], entries: Mapping[str, Entry], setting: Setting, measure: str
) -> dict[str, Score]:
    """The scores of all methods in a setting, but for Holm's correction."""
    experiment = results.experiment
    best = _best(learners, entries, measure)
    baseline = next(iter(_best([m for m in learners if m in experiment.baselines], entries, measure)), None)
    logging = next((e for m, e in entries.items() if learner_of(experiment, m) == "logging"), None)
    oracle = next((e for m, e in entries.items() if learner_of(experiment, m) in ("oracle", "oracle-best")), None)
    scores = {}
    for method, entry in entries.items():
        number, gaps = _paper(results, method, setting, measure)
        score = Score(
            mean=entry.mean(measure) if entry.results else None,
            deviation=entry.deviation(measure) if entry.results else None,
            finished=len(entry.results),
            planned=entry.planned,
            failed=len(entry.failed),
            best=method in best,
            paper=number,
            paper_gaps=gaps,
        )
        is_tested = method in learners and method not in experiment.baselines
        if is_tested and baseline and (comparison := _compare(entry, entries[baseline], measure)):
            score = replace(score, against=baseline, comparison=comparison)
        if method in learners and logging and oracle:
            score = replace(score, gap=_gap(entry, logging, oracle, measure))
        scores[method] = score
    return scores


def _best(methods: Sequence[str], entries: Mapping[str, Entry], measure: str) -> list[str]:
    """The methods with the highest mean of those with the most runs: means over other folds do not compare."""
    finished = {m: len(entries[m].results) for m in methods if m in entries and entries[m].results}
    most = max(finished.values(), default=0)
    means = {m: entries[m].mean(measure) for m, runs in finished.items() if runs == most}
    highest = max(means.values(), default=0.0)
    return [m for m, mean in means.items() if mean == highest]


def _compare(first: Entry, second: Entry, measure: str) -> Comparison | None:
    """Over the queries of the runs that both have; None where there are fewer than two."""
    runs = sorted(first.results.keys() & second.results.keys())
    if not runs:
        return None
    ours, theirs = (np.concatenate(entry.per_query(measure, runs)) for entry in (first, second))
    if np.count_nonzero(~np.isnan(ours) & ~np.isnan(theirs)) < 2:
        return None
    return compare(ours, theirs, seed=0, resamples=RESAMPLES)


def _gap(method: Entry, logging: Entry, oracle: Entry, measure: str) -> GapClosed | None:
    """From the runs that all three have."""
    runs = sorted(method.results.keys() & logging.results.keys() & oracle.results.keys())
    return gap_closed(*(entry.per_query(measure, runs) for entry in (method, logging, oracle))) if runs else None


def _paper(
    results: Results, method: str, setting: Setting, measure: str
) -> tuple[PaperNumber | None, dict[str, float]]:
    """The paper's number on this data set, and its gap closed on each of its own."""
    experiment = results.experiment
    tables = experiment.report.paper
    if not tables:
        return None, {}
    learner = learner_of(experiment, method)
    is_yardstick = learner in YARDSTICKS
    depends_on_logging = setting.logging and learner not in WITHOUT_LOG
    logging = paper_logging(experiment.logging_named(setting.logging)) if depends_on_logging else USUAL_LOGGING
    click_model = "" if is_yardstick else experiment.report.paper_names.get(setting.click_model, setting.click_model)
    places = {
        dataset: Place(dataset, click_model, paper_name(experiment, method), measure, logging) for dataset in DATASETS
    }
    ours = places.get(results.data.get("paper_name", ""))
    number = paper_number(ours, tables) if ours else None
    if is_yardstick:
        return number, {}
    gaps = {dataset: paper_gap_closed(place, tables) for dataset, place in places.items()}
    return number, {dataset: gap for dataset, gap in gaps.items() if gap is not None}


def learner_of(experiment: Experiment, method: str) -> str:
    """What a row is made by; "" for the best value of a sweep, which is none of the experiment's own methods."""
    known = {name for grid in experiment.grid for name in grid.method}
    return experiment.method_named(method).learner if method in known else ""
