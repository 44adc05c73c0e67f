"""`cuolr report`: the results of an experiment as a page, tables and plots."""

from pathlib import Path
from typing import TYPE_CHECKING

import tyro

from cuolr.cli.terminal import show_json, show_table, show_text

if TYPE_CHECKING:
    from cuolr.experiments.report.summary import Score, Summary, Table


def report(results: tyro.conf.Positional[Path], out: Path | None = None, json: bool = False) -> None:
    """Write a report on an experiment's results: one HTML page, tables (Markdown, CSV, LaTeX) and plots.

    The results may be unfinished; what is missing or failed is shown as such.

    Args:
        results: Folder of the results.
        out: Folder of the report; by default `report` within the results. An earlier report there is replaced.
        json: Print the numbers as JSON instead of a table.
    """
    # These load torch and take a second; no other command should wait for them.
    from cuolr.experiments.report.report_folder import PAGE, numbers, refuse_others, write_report
    from cuolr.experiments.report.summary import summarise
    from cuolr.experiments.results import read_results

    folder = out or results / "report"
    found = read_results(results)
    refuse_others(folder)
    summary = summarise(found)
    write_report(summary, folder)
    if json:
        show_json({**numbers(summary), "page": str(folder / PAGE)})
        return
    for table in summary.tables:
        _show(summary, table)
    show_text(f"{_legend(summary)}\n{folder / PAGE}")


def _show(summary: "Summary", table: "Table") -> None:
    """The main measure's table, with the gap closed on average."""
    import numpy as np

    from cuolr.experiments.report.wording import NO_VALUE, measure_label, percent

    measure = summary.main_measure
    rows = []
    for method in (*table.learners, *table.yardsticks):
        scores = [table.scores.get((method, setting, measure)) for setting in table.columns.settings]
        gaps = [score.gap.value for score in scores if score and score.gap]
        closed = percent(float(np.mean(gaps))) if gaps else NO_VALUE
        rows.append([method, *(_text(score) for score in scores), closed])
    title = summary.results.experiment.title + (f": {table.columns.title}" if table.columns.title else "")
    show_table(title, [measure_label(measure), *table.columns.labels, "gap closed"], rows)


def _text(score: "Score | None") -> str:
    if score is None:
        return ""
    if score.mean is None:
        return "failed" if score.failed else "missing"
    runs = f" ({score.finished}/{score.planned})" if score.finished < score.planned else ""
    return f"{score.mean:.3f}{runs}{score.mark}{'·' if score.best else ''}"


def _legend(summary: "Summary") -> str:
    from cuolr.experiments.report.wording import meaning_of_stars, what_was_run

    stars = next(filter(None, map(meaning_of_stars, summary.tables)), "")
    marks = "; ".join(filter(None, ("· the best learner", stars, "(n/m) n of m runs are there")))
    return f"{what_was_run(summary)} {marks}."
