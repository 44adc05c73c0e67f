"""Differences of two methods, with an interval that covers other queries and other runs."""

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cuolr.data.spreadsheet_text import row_without_formulas
from cuolr.evaluation.significance import t_interval
from cuolr.experiments.report.scores import Entry
from cuolr.experiments.report.settings import Setting
from cuolr.experiments.report.summary import Summary, compare_entries
from cuolr.experiments.report.table_files import escape_markdown
from cuolr.experiments.report.wording import measure_label, runs_word

NOTHING = "–"
LEGEND = (
    "Difference (95 % interval). Of two intervals the wider one is shown: the bootstrap over queries, each with all "
    "its runs, and Student's t over {runs}. * = it does not contain 0."
)


@dataclass(frozen=True)
class MethodDifference:
    """A method against another, in a setting.

    Attributes:
        method: The method.
        other: The one to compare with.
        setting: The setting.
        value: Mean over queries of the method minus the other, by the main measure.
        over_queries: 95 % bootstrap interval over queries; the value of a query is the mean over its seeds.
        over_runs: 95 % t interval over the means of folds or seeds; None for one run.
        runs: Number of runs that both have.
    """

    method: str
    other: str
    setting: Setting
    value: float
    over_queries: tuple[float, float]
    over_runs: tuple[float, float] | None
    runs: int

    @property
    def interval(self) -> tuple[float, float]:
        """The wider of the two intervals."""
        known = [self.over_queries] if self.over_runs is None else [self.over_queries, self.over_runs]
        return max(known, key=lambda ends: ends[1] - ends[0])

    @property
    def text(self) -> str:
        """The difference with its interval, in a few characters."""
        low, high = self.interval
        return f"{self.value:+.3f}{'*' if low > 0 or high < 0 else ''} ({low:+.3f} to {high:+.3f})"


def differences(summary: Summary) -> list[MethodDifference]:
    """All differences that the experiment asks for, in settings where both methods have results."""
    pairs = summary.results.experiment.report.differences
    settings = dict.fromkeys(setting for _, setting in summary.entries)
    found = (_difference(summary, method, other, setting) for method, other in pairs.items() for setting in settings)
    return [difference for difference in found if difference is not None]


def _difference(summary: Summary, method: str, other: str, setting: Setting) -> MethodDifference | None:
    measure = summary.main_measure
    entries = [summary.entries.get((name, setting)) for name in (method, other)]
    first, second = (entry or Entry({}) for entry in entries)
    comparison = compare_entries(first, second, measure)
    if comparison is None:
        return None
    runs = sorted(first.results.keys() & second.results.keys())
    of_runs = [first.results[run].measures[measure] - second.results[run].measures[measure] for run in runs]
    over_runs = t_interval(of_runs) if len(runs) > 1 else None
    return MethodDifference(method, other, setting, comparison.difference, comparison.interval, over_runs, len(runs))


def difference_files(summary: Summary) -> dict[str, str]:
    """The differences as Markdown and CSV, by the name of the file; empty if the experiment asks for none."""
    found = differences(summary)
    if not found:
        return {}
    return {"differences.md": _markdown(summary, found), "differences.csv": _csv(found)}


def _markdown(summary: Summary, found: list[MethodDifference]) -> str:
    by_place = {(d.method, d.setting): d for d in found}
    lines = [
        f"# {escape_markdown(summary.results.experiment.title)}: differences of {measure_label(summary.main_measure)}"
    ]
    for table in summary.tables:
        settings = [setting for setting in table.columns.settings if any(d.setting == setting for d in found)]
        labels = dict(zip(table.columns.settings, table.columns.labels, strict=True))
        if not settings:
            continue
        heads = ["method", "minus", *(escape_markdown(labels[setting]) for setting in settings)]
        lines += ["", f"**{escape_markdown(table.columns.title)}**"] if table.columns.title else []
        lines += ["", f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
        for method, other in dict.fromkeys((d.method, d.other) for d in found):
            cells = [by_place.get((method, setting)) for setting in settings]
            values = [escape_markdown(cell.text) if cell else NOTHING for cell in cells]
            lines.append(f"| {' | '.join([escape_markdown(method), escape_markdown(other), *values])} |")
    return "\n".join([*lines, "", escape_markdown(LEGEND.format(runs=f"{runs_word(summary)}s")), ""])


def _csv(found: list[MethodDifference]) -> str:
    text = io.StringIO(newline="")
    rows = list(_records(found))
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(map(row_without_formulas, rows))
    return text.getvalue()


def _records(found: list[MethodDifference]) -> Iterator[dict[str, object]]:
    for d in found:
        low, high = d.over_runs or (np.nan, np.nan)
        yield {
            "method": d.method,
            "minus": d.other,
            "click_model": d.setting.click_model,
            "logging": d.setting.logging,
            "sessions_per_query": d.setting.sessions_per_query,
            "difference": d.value,
            "queries_low": d.over_queries[0],
            "queries_high": d.over_queries[1],
            "runs_low": low,
            "runs_high": high,
            "runs": d.runs,
        }
