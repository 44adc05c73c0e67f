"""The text of a report: names, numbers, captions and findings."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cuolr.experiments.report.paper import DATASETS, Note, notes_on
from cuolr.experiments.report.scores import Score, Table
from cuolr.experiments.report.settings import Setting
from cuolr.experiments.report.summary import Summary, equal_methods, paper_name

NO_VALUE = "–"
ORACLE_NOTE = "Above 100 %: better than ORACLE, which is trained on labels but is not an upper bound."


@dataclass(frozen=True)
class ColumnWords:
    """The words for columns in a sentence."""

    one: str
    several: str
    before: str

    def count(self, number: int) -> str:
        """A number of columns."""
        return f"{number} {self.one if number == 1 else self.several}"


_SETTINGS = ColumnWords("setting", "settings", "in")
_COLUMNS = {
    "click_model": ColumnWords("click model", "click models", "under"),
    "logging": ColumnWords("logging policy", "logging policies", "with"),
    "sessions_per_query": ColumnWords("log size", "log sizes", "with"),
}


def measure_label(measure: str) -> str:
    """A measure as the paper writes it.

    >>> measure_label("ndcg@10"), measure_label("err@5"), measure_label("precision@3")
    ('nDCG@10', 'ERR@5', 'precision@3')
    """
    return measure.replace("ndcg", "nDCG").replace("err@", "ERR@").replace("mrr", "MRR").replace("map", "MAP")


def percent(share: float) -> str:
    """A share as a percentage.

    >>> percent(0.634), percent(-0.04), percent(-0.001)
    ('63 %', '−4 %', '0 %')
    """
    return f"{whole_percent(share)} %"


def whole_percent(share: float) -> str:
    """A percentage without the sign, for intervals."""
    return f"{round(100 * share):d}".replace("-", "−")


def duration(seconds: float) -> str:
    """A duration in words.

    >>> duration(41.2), duration(200), duration(9000)
    ('41 s', '3 min 20 s', '2 h 30 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def enumerate_words(words: Sequence[str]) -> str:
    """A list in a sentence.

    >>> enumerate_words(["PBM", "UBM", "CCM"])
    'PBM, UBM and CCM'
    """
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def count(number: int, noun: str) -> str:
    """A number with its noun.

    >>> count(1, "fold"), count(5, "fold"), count(2, "query")
    ('1 fold', '5 folds', '2 queries')
    """
    plural = noun if number == 1 else f"{noun.removesuffix('y')}ies" if noun.endswith("ry") else f"{noun}s"
    return f"{number:,} {plural}"


def runs_word(summary: Summary) -> str:
    """What the runs of a cell are: folds or seeds."""
    results = summary.results
    return "fold" if any(cell.fold for cell in results.planned) else "seed"


def number_of_runs(summary: Summary) -> int:
    """The number of folds or seeds that have results."""
    return max((entry.planned for entry in summary.entries.values()), default=0)


def state_of(score: Score, run: str) -> str:
    """The state of runs without a result; "" if all have one.

    >>> state_of(Score(None, None, finished=0, planned=5, failed=2), "fold")
    'failed'
    >>> state_of(Score(0.5, None, finished=3, planned=5, failed=0), "fold")
    '3 of 5 folds'
    """
    if score.finished == score.planned:
        return ""
    if score.finished:
        return f"{score.finished} of {count(score.planned, run)}"
    return "failed" if score.failed else "missing"


def column_words(table: Table) -> ColumnWords:
    """The words for the columns of a table."""
    return _COLUMNS[table.columns.axes[0]] if len(table.columns.axes) == 1 else _SETTINGS


def setting_labels(summary: Summary) -> dict[Setting, str]:
    """The label of each setting, with the title of its table if there are several."""
    return {
        setting: ", ".join(filter(None, (table.columns.title, label)))
        for table in summary.tables
        for setting, label in zip(table.columns.settings, table.columns.labels, strict=True)
    }


def caption(summary: Summary, table: Table) -> str:
    """How to read the numbers of a table."""
    run, runs = runs_word(summary), number_of_runs(summary)
    parts = [f"Mean ± standard deviation over {count(runs, run)}" if runs > 1 else f"One {run}"]
    if len(table.learners) > 1:
        parts.append("the best learner in bold")
    text = "; ".join(filter(None, (*parts, meaning_of_stars(table)))) + "."
    return " ".join(filter(None, (text, _equal_methods(summary, table))))


def _equal_methods(summary: Summary, table: Table) -> str:
    """The methods with the same value on every query, and where; "" if there are none."""
    labels: dict[tuple[str, ...], list[str]] = {}
    for setting, label in zip(table.columns.settings, table.columns.labels, strict=True):
        for group in equal_methods(summary, table, setting):
            labels.setdefault(group, []).append(label)
    before = column_words(table).before
    groups = [
        enumerate_words(group) + (f" {before} {enumerate_words(where)}" if any(where) else "")
        for group, where in labels.items()
    ]
    return f"The same value on every query: {'; '.join(groups)}." if groups else ""


def meaning_of_stars(table: Table) -> str:
    """The meaning of the marks of a table; "" if it has no tests."""
    if not any(score.comparison for score in table.scores.values()):
        return ""
    return (
        f"* p < 0.05 and ** p < 0.01: better than {rival(table)} {column_words(table).before} the same "
        f"{column_words(table).one}, † p < 0.05: worse (paired t-test over queries, Holm's correction over all "
        "comparisons of the table by the same measure)"
    )


def rival(table: Table) -> str:
    """What methods are tested against: the only baseline by name, or the best baseline."""
    tested = {method for (method, _, _), score in table.scores.items() if score.comparison}
    baselines = [method for method in table.learners if method not in tested]
    return baselines[0] if len(baselines) == 1 else "the best baseline"


def paper_numbers_caption(summary: Summary, table: Table) -> str:
    """The meaning of the grey numbers; "" if there are none."""
    if not any(score.paper for score in table.scores.values()):
        return ""
    return f"Grey: the paper's numbers on {DATASETS[summary.results.data['paper_name']]}."


def has_paper_gaps(table: Table) -> bool:
    """Whether the paper's numbers give a gap closed to print beside ours."""
    return any(score.paper_gaps for score in table.scores.values())


def gap_caption(summary: Summary) -> str:
    """How to read the gaps."""
    several = f"means over {runs_word(summary)}s" if number_of_runs(summary) > 1 else "means"
    text = (
        f"(method − LOGGING) / (ORACLE − LOGGING), from {several}, with a 95 % bootstrap interval over queries; "
        f"{NO_VALUE} if ORACLE is not significantly better than LOGGING (paired t-test over queries, p < 0.05), or if "
        "one of the three is missing."
    )
    gaps = [score.gap for table in summary.tables for score in table.scores.values() if score.gap]
    return f"{text} {ORACLE_NOTE}" if any(gap.value > 1 for gap in gaps) else text


def has_marked_numbers(summary: Summary) -> bool:
    """Whether one of the paper's numbers has a note."""
    return any(s.paper.marks for table in summary.tables for s in table.scores.values() if s.paper)


def paper_notes(summary: Summary) -> list[Note]:
    """Notes on the paper's numbers."""
    experiment = summary.results.experiment
    rows = [method for table in summary.tables for method in (*table.learners, *table.references)]
    return notes_on([paper_name(experiment, row) for row in rows]) if experiment.report.paper else []


def what_was_run(summary: Summary) -> str:
    """The experiment in a sentence."""
    results = summary.results
    derived = {name for name, _ in summary.chosen}
    learners = {m for table in summary.tables for m in table.learners} - derived
    settings = sum(len(table.columns.settings) for table in summary.tables)
    words = column_words(summary.tables[0]) if len(summary.tables) == 1 else _SETTINGS
    cells = results.planned
    begun, runs = number_of_runs(summary), len({(cell.fold, cell.seed) for cell in cells})
    part = "" if begun == runs else f"{begun} of "
    sentence = (
        f"{count(len(learners), 'method')} {words.before} {words.count(settings)} on {results.data['name']}, "
        f"{part}{count(runs, runs_word(summary))}: {count(len(cells), 'cell')}"
    )
    left = [
        f"{len(cells)} {word}" for cells, word in ((results.failed, "failed"), (results.missing, "missing")) if cells
    ]
    return f"{sentence}, of which {enumerate_words(left)}." if left else f"{sentence}, all finished."


def findings(table: Table, measure: str) -> list[str]:
    """Which method leads, how significantly, and how much of the gap it closes."""
    words = column_words(table)
    labels = dict(zip(table.columns.settings, table.columns.labels, strict=True))
    led = {setting: leader for setting in labels if (leader := table.leader(setting, measure))}
    sentences: list[str] = []
    for method, times in Counter(led.values()).most_common():
        won = [setting for setting in labels if led.get(setting) == method]
        if len(labels) == 1:
            where = ""
        elif times == len(labels):
            where = (
                f" {words.before} both {words.several}" if times == 2 else f" {words.before} all {words.count(times)}"
            )
        else:
            where = f" {words.before} {enumerate_words([labels[setting] for setting in won])}"
        lead = f"{method} leads{where}" if sentences else f"By {measure_label(measure)}, {method} leads{where}"
        sentences.append(lead + _significance(table, method, won, measure) + ".")
        if len(sentences) == 1:
            sentences += _gaps(table, method, measure)
    return sentences


def _significance(table: Table, method: str, won: Sequence[Setting], measure: str) -> str:
    scores = [table.scores[method, setting, measure] for setting in won]
    tested = [score for score in scores if score.comparison]
    better = sum(score.mark.startswith("*") for score in tested)
    if not tested:
        return ""
    if better == len(tested):
        return f", significantly better than {rival(table)}" + (" in each case" if better > 1 else "")
    if better == 0:
        return f", not significantly better than {rival(table)}"
    return f", significantly better than {rival(table)} in {better} of {len(tested)} cases"


def _gaps(table: Table, method: str, measure: str) -> list[str]:
    gaps = [
        (score.gap.value, label)
        for setting, label in zip(table.columns.settings, table.columns.labels, strict=True)
        if (score := table.scores.get((method, setting, measure))) and score.gap
    ]
    if not gaps:
        return []
    mean = percent(float(np.mean([gap for gap, _ in gaps])))
    if len(gaps) == 1:
        return [f"It closes {mean} of the gap between LOGGING and ORACLE."]
    (low, low_label), (high, high_label) = min(gaps), max(gaps)
    return [
        f"It closes {mean} of the gap between LOGGING and ORACLE on average, from {percent(low)} ({low_label}) "
        f"to {percent(high)} ({high_label})."
    ]
