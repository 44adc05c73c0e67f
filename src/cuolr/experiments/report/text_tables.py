"""Tables of a report for the terminal."""

from dataclasses import dataclass

import numpy as np

from cuolr.experiments.report.scores import Score, Table
from cuolr.experiments.report.summary import Summary
from cuolr.experiments.report.wording import NO_VALUE, meaning_of_stars, measure_label, percent, what_was_run


@dataclass(frozen=True)
class TextTable:
    """A table of texts."""

    title: str
    heads: list[str]
    rows: list[list[str]]


def text_table(summary: Summary, table: Table) -> TextTable:
    """The main measure of each method in each setting, and the mean gap closed."""
    measure = summary.main_measure
    rows = []
    for method in (*table.learners, *table.references):
        scores = [table.scores.get((method, setting, measure)) for setting in table.columns.settings]
        gaps = [score.gap.value for score in scores if score and score.gap]
        closed = percent(float(np.mean(gaps))) if gaps else NO_VALUE
        rows.append([method, *(_text(score) for score in scores), closed])
    title = summary.results.experiment.title + (f": {table.columns.title}" if table.columns.title else "")
    return TextTable(title, [measure_label(measure), *table.columns.labels, "gap closed"], rows)


def legend(summary: Summary) -> str:
    """What was run, and the marks of the tables."""
    stars = next(filter(None, map(meaning_of_stars, summary.tables)), "")
    marks = "; ".join(filter(None, ("· best learner", stars, "(n/m) n of m runs finished")))
    return f"{what_was_run(summary)} {marks}."


def _text(score: Score | None) -> str:
    if score is None:
        return ""
    if score.mean is None:
        return "failed" if score.failed else "missing"
    runs = f" ({score.finished}/{score.planned})" if score.finished < score.planned else ""
    return f"{score.mean:.3f}{runs}{score.mark}{'·' if score.best else ''}"
