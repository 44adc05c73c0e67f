"""The folder of a report: the page, the tables, the plots, and the numbers as JSON."""

import json
from pathlib import Path
from typing import Any

from cuolr.config import to_dict, to_toml
from cuolr.errors import InputError
from cuolr.experiments.report.differences import difference_files
from cuolr.experiments.report.drawing import save
from cuolr.experiments.report.page import efforts, render
from cuolr.experiments.report.plots import all_plots
from cuolr.experiments.report.summary import Summary, summarise
from cuolr.experiments.report.table_files import as_csv, latex, markdown, records
from cuolr.experiments.results_folder import read_results
from cuolr.files import atomic_folder, read_json, refuse_existing
from cuolr.progress import Stages, unseen_stages

PAGE = "report.html"
# Lists the files of the report. A folder without it, or with other files, is not replaced.
NUMBERS = "report.json"


def make_report(results: Path, out: Path, stages: Stages = unseen_stages) -> Summary:
    """Write the report on a folder of results, or on a file of packed results."""
    saved = read_results(results)
    refuse_others(out)
    summary = summarise(saved, stages)
    write_report(summary, out, stages)
    return summary


def refuse_others(out: Path) -> None:
    """Raise, before any work, if an existing folder is not a report."""
    refuse_existing(out, overwrite=True, ours=NUMBERS)
    if not out.exists():
        return
    try:
        known = set(read_json(out / NUMBERS)["files"])
    except (ValueError, KeyError, TypeError):
        known = {NUMBERS}
    if others := sorted({file.name for file in out.iterdir()} - known):
        raise InputError(
            f"{out}: not replaced, because {others[0]} does not belong to the report; choose another path or remove "
            "that file"
        )


def write_report(summary: Summary, out: Path, stages: Stages = unseen_stages) -> None:
    """Write the report, all or nothing. An earlier report is replaced; any other folder raises."""
    refuse_others(out)
    with atomic_folder(out, overwrite=True, ours=NUMBERS) as folder:
        plots = all_plots(summary)
        with_files = [plot for plot in plots if plot.measure in ("", summary.main_measure)]
        progress = stages("drawing", sum(len(plot.panels) for plot in [*with_files, *plots]))
        for plot in with_files:
            save(plot, folder)
            progress(len(plot.panels))
        texts = {
            "tables.md": markdown(summary),
            "tables.csv": as_csv(summary),
            "experiment.toml": to_toml(summary.results.experiment),
            **difference_files(summary),
            **{f"table-{number}.tex": latex(summary, table) for number, table in enumerate(summary.tables, start=1)},
        }
        files = [NUMBERS, *texts, *sorted(file.name for file in folder.iterdir())]
        texts[NUMBERS] = json.dumps({**numbers(summary), "files": [PAGE, *files]}, indent=2) + "\n"
        texts[PAGE] = render(summary, plots, files, _command(summary), progress)
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")


def numbers(summary: Summary) -> dict[str, Any]:
    """The numbers of the report, in JSON types."""
    results = summary.results
    return {
        "title": results.experiment.title,
        "data": dict(results.data),
        "main_measure": summary.main_measure,
        "scores": records(summary),
        "chosen": [
            {"row": row, "setting": to_dict(setting), "method": method}
            for (row, setting), method in summary.chosen.items()
        ],
        "finished": len(results.cells),
        "failed": {str(cell): error for cell, error in results.failed.items()},
        "missing": [str(cell) for cell in results.missing],
        "seconds": {effort.method: effort.total for effort in efforts(results)},
        "versions": dict(results.versions),
    }


def _command(summary: Summary) -> str:
    """The command that reproduces the results: as it was typed, or with the configuration beside the page."""
    known = summary.results.data.get("command")
    return str(known) if known else "cuolr experiment experiment.toml --data DATA --out RESULTS"
