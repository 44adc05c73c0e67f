"""`cuolr report`: the results of an experiment as a page, tables and plots."""

from pathlib import Path
from typing import TYPE_CHECKING

import tyro

from cuolr.cli.terminal import show_json, show_table, show_text, stage_bars

if TYPE_CHECKING:
    from cuolr.experiments.report.summary import Summary


def report(results: tyro.conf.Positional[Path], out: Path | None = None, json: bool = False) -> None:
    """Write a report on an experiment's results: one HTML page, tables (Markdown, CSV, LaTeX) and plots.

    The results may be unfinished. Missing and failed cells are shown as such.

    Args:
        results: Folder of the results, or a Parquet file of packed results.
        out: Folder of the report. By default `report` in the folder, or `NAME-report` beside NAME.parquet. An earlier
            report is replaced.
        json: Print the numbers as JSON instead of a table.
    """
    if (results / "real.json").is_file():
        _show_real(results, json)
        return
    from cuolr.examination.plot import require_matplotlib

    require_matplotlib()
    beside = results.with_name(f"{results.stem}-report") if results.is_file() else results / "report"
    show_report(results, out or beside, json)


def show_report(results: Path, out: Path, json: bool) -> None:
    """Write a report, and print its main table or its numbers."""
    # These load torch, which takes a second.
    from cuolr.experiments.report.report_folder import PAGE, make_report

    with stage_bars() as stages:
        summary = make_report(results, out, stages)
    show_summary(summary, json, out / PAGE)


def show_summary(summary: "Summary", json: bool, page: Path | None = None) -> None:
    """Print the main table or the numbers of results, and where their page is, if there is one."""
    from cuolr.experiments.report.report_folder import numbers
    from cuolr.experiments.report.text_tables import legend, text_table

    if json:
        show_json({**numbers(summary), "page": None if page is None else str(page)})
        return
    for table in summary.tables:
        text = text_table(summary, table)
        show_table(text.title, text.heads, text.rows)
    show_text(legend(summary) if page is None else f"{legend(summary)}\n{page}")


def _show_real(results: Path, json: bool) -> None:
    """Print the tables of methods on a real log, which have no page."""
    from cuolr.cli.experiment import show_real
    from cuolr.experiments.real import SUMMARY_FILE, read_summary
    from cuolr.experiments.results import damage_in

    with damage_in(results / SUMMARY_FILE):
        show_real(read_summary(results), json)
