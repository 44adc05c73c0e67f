"""The content of a report: means, tests against the best baseline, and the gap closed.

The unit of a test is the query. The value of a query that was run with several seeds is the mean over them; queries of
different folds are different queries.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cuolr.evaluation.significance import Comparison, compare, holm
from cuolr.experiments.report.paper import (
    DATASETS,
    USUAL_LOGGING,
    PaperNumber,
    Place,
    paper_gap_closed,
    paper_logging,
    paper_number,
)
from cuolr.experiments.report.scores import Entry, GapClosed, Score, Table, gap_closed
from cuolr.experiments.report.settings import Columns, Setting, columns_of, settings_of
from cuolr.experiments.results import Results
from cuolr.experiments.spec import WITHOUT_LOG, Cell, Experiment
from cuolr.progress import Progress, Stages, no_stages
from cuolr.random import FIXED_SEED

# Only for the interval of a difference; the tests are t-tests.
RESAMPLES = 999


@dataclass(frozen=True)
class Summary:
    """The content of a report.

    Attributes:
        results: The results.
        main_measure: The measure that the report shows first.
        entries: By method and setting.
        tables: One, or one for each value of the axes that are not in the columns.
        chosen: For the best value of a sweep, by its row and setting: the method chosen on validation queries.
    """

    results: Results
    main_measure: str
    entries: Mapping[tuple[str, Setting], Entry]
    tables: tuple[Table, ...]
    chosen: Mapping[tuple[str, Setting], str]


def summarise(results: Results, stages: Stages = no_stages) -> Summary:
    """Compute the content of the report, for the runs and columns that have results.

    Args:
        results: The saved results.
        stages: Receives the columns of tables that were compared so far.
    """
    experiment = results.experiment
    methods = experiment.methods
    begun = replace(results, missing=_missing_of_begun(results))
    known = set(begun.planned)
    folds = sorted({cell.fold for cell in known} - {0})
    settings = settings_of([cell for cell in experiment.cells(folds) if cell in known])
    entries = {(name, s): entry for name in methods for s in settings if (entry := _entry(begun, name, s)).planned}
    chosen = _best_of_sweeps(experiment, methods, settings, entries)
    entries |= {key: entries[method, key[1]] for key, method in chosen.items()}
    measures, of_tables = experiment.measures, columns_of(experiment, settings)
    progress = stages("comparing", len(measures) * sum(len(columns.settings) for columns in of_tables))
    best_of_sweeps = list(dict.fromkeys(name for name, _ in chosen))
    tables = tuple(_table(results, columns, entries, best_of_sweeps, progress) for columns in of_tables)
    main = next((m for m in (experiment.validation, "ndcg@10") if m in measures), measures[0])
    return Summary(results, main, entries, tables, chosen)


def _missing_of_begun(results: Results) -> tuple[Cell, ...]:
    """The missing cells of folds, seeds and logs for which other cells have results."""
    begun = [*results.cells, *results.failed]
    runs = {(cell.fold, cell.seed) for cell in begun}
    logs = {_log(cell) for cell in begun if cell.click_model}
    return tuple(
        cell
        for cell in results.missing
        if (not runs or (cell.fold, cell.seed) in runs) and (not logs or not cell.click_model or _log(cell) in logs)
    )


def _log(cell: Cell) -> tuple[str, str, int]:
    return cell.logging, cell.click_model, cell.sessions_per_query


def paper_name(experiment: Experiment, method: str) -> str:
    """The paper's name of a method."""
    return experiment.report.paper_names.get(method, method)


def _entry(results: Results, method: str, setting: Setting) -> Entry:
    ours = {
        cell: (cell.fold, cell.seed) for cell in results.planned if cell.method == method and setting.includes(cell)
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
            results = {m: entries[m, setting].results for m in members if (m, setting) in entries}
            most = max(map(len, results.values()), default=0)
            scores = {
                m: np.mean([result.validations[result.best_step] for result in runs.values()])
                for m, runs in results.items()
                if runs and len(runs) == most and all(result.validations for result in runs.values())
            }
            if len(scores) > 1:
                chosen[f"{family}(best)", setting] = max(scores, key=lambda m: scores[m])
    return chosen


def _table(
    results: Results,
    columns: Columns,
    entries: Mapping[tuple[str, Setting], Entry],
    best_of_sweeps: Sequence[str],
    progress: Progress,
) -> Table:
    experiment = results.experiment
    rows = (*columns.methods, *best_of_sweeps)
    shown = [method for method in rows if any((method, setting) in entries for setting in columns.settings)]
    references = tuple(m for m in shown if m not in best_of_sweeps and experiment.method_named(m).is_reference)
    learners = tuple(m for m in shown if m not in references)
    scores: dict[tuple[str, Setting, str], Score] = {}
    for measure in experiment.measures:
        of_measure: dict[tuple[str, Setting], Score] = {}
        for setting in columns.settings:
            here = {m: entries[m, setting] for m in shown if (m, setting) in entries}
            of_measure |= {(m, setting): s for m, s in _column(results, learners, here, setting, measure).items()}
            progress(1)
        tested = [key for key, score in of_measure.items() if score.comparison]
        corrected = holm([c.t_test for key in tested if (c := of_measure[key].comparison)])
        for key, p_value in zip(tested, corrected, strict=True):
            of_measure[key] = replace(of_measure[key], p_value=p_value)
        scores |= {(method, setting, measure): score for (method, setting), score in of_measure.items()}
    swept = {m for m in learners if learner_of(experiment, m) and experiment.method_named(m).swept_from}
    contenders = tuple(m for m in learners if m not in swept) if best_of_sweeps else learners
    return Table(columns, learners, contenders, references, scores)


def _column(
    results: Results, learners: Sequence[str], entries: Mapping[str, Entry], setting: Setting, measure: str
) -> dict[str, Score]:
    """The scores of all methods in a setting, before Holm's correction."""
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
        if is_tested and baseline and (comparison := compare_entries(entry, entries[baseline], measure)):
            score = replace(score, against=baseline, comparison=comparison)
        if method in learners and logging and oracle:
            score = replace(score, gap=_gap(entry, logging, oracle, measure))
        scores[method] = score
    return scores


def _best(methods: Sequence[str], entries: Mapping[str, Entry], measure: str) -> list[str]:
    """The methods with the highest mean among those with the most runs; other means are not comparable."""
    finished = {m: len(entries[m].results) for m in methods if m in entries and entries[m].results}
    most = max(finished.values(), default=0)
    means = {m: entries[m].mean(measure) for m, runs in finished.items() if runs == most}
    highest = max(means.values(), default=0.0)
    return [m for m, mean in means.items() if mean == highest]


def compare_entries(first: Entry, second: Entry, measure: str) -> Comparison | None:
    """Over the queries of the runs that both have; None for fewer than two queries."""
    runs = sorted(first.results.keys() & second.results.keys())
    if not runs:
        return None
    ours, theirs = (np.concatenate(entry.per_query(measure, runs)) for entry in (first, second))
    if np.count_nonzero(~np.isnan(ours) & ~np.isnan(theirs)) < 2:
        return None
    return compare(ours, theirs, seed=FIXED_SEED, resamples=RESAMPLES)


def _gap(method: Entry, logging: Entry, oracle: Entry, measure: str) -> GapClosed | None:
    """From the runs that all three have; None without any."""
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
    is_reference = bool(learner) and experiment.method_named(method).is_reference
    depends_on_logging = setting.logging and learner not in WITHOUT_LOG
    logging = paper_logging(experiment.logging_named(setting.logging)) if depends_on_logging else USUAL_LOGGING
    click_model = "" if is_reference else experiment.report.paper_names.get(setting.click_model, setting.click_model)
    places = {
        dataset: Place(dataset, click_model, paper_name(experiment, method), measure, logging) for dataset in DATASETS
    }
    ours = places.get(results.data.get("paper_name", ""))
    number = paper_number(ours, tables) if ours else None
    if is_reference:
        return number, {}
    gaps = {dataset: paper_gap_closed(place, tables) for dataset, place in places.items()}
    return number, {dataset: gap for dataset, gap in gaps.items() if gap is not None}


def learner_of(experiment: Experiment, method: str) -> str:
    """The learner of a row; "" for the best value of a sweep, which is not a method of the experiment."""
    return experiment.method_named(method).learner if method in experiment.methods else ""


def equal_methods(summary: Summary, table: Table, setting: Setting) -> list[tuple[str, ...]]:
    """The groups of learners whose values are the same on every query of every run in a setting, by every measure."""
    groups: list[list[str]] = []
    learners = [
        m for m in table.learners if m in summary.results.experiment.methods and (m, setting) in summary.entries
    ]
    for method in learners:
        entry = summary.entries[method, setting]
        known = (group for group in groups if entry.equals(summary.entries[group[0], setting]))
        group = next(known, None)
        if group is None:
            groups.append([method])
        else:
            group.append(method)
    return [tuple(group) for group in groups if len(group) > 1]
