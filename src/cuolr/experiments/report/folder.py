"""The folder of a report: the page, the tables, the plots, and the numbers for programs."""

import json
from pathlib import Path
from typing import Any

from cuolr.config import to_dict, to_toml
from cuolr.experiments.report.drawing import save
from cuolr.experiments.report.page import efforts, render
from cuolr.experiments.report.plots import all_plots
from cuolr.experiments.report.summary import Summary
from cuolr.experiments.report.tables import as_csv, latex, markdown, records
from cuolr.files import atomic_folder

PAGE = "report.html"
# Every report has it; a folder without it is not replaced.
NUMBERS = "report.json"


def write_report(summary: Summary, out: Path) -> None:
    """Write everything, whole or not at all; an earlier report is replaced, and nothing else."""
    with atomic_folder(out, overwrite=True, ours=NUMBERS) as folder:
        plots = all_plots(summary)
        for plot in plots:
            if plot.measure in ("", summary.main_measure):
                save(plot, folder)
        texts = {
            NUMBERS: json.dumps(numbers(summary), indent=2) + "\n",
            "tables.md": markdown(summary),
            "tables.csv": as_csv(summary),
            "experiment.toml": to_toml(summary.results.experiment),
            **{f"table-{number}.tex": latex(summary, table) for number, table in enumerate(summary.tables, start=1)},
        }
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
        files = [*texts, *sorted(file.name for file in folder.iterdir() if file.suffix in (".png", ".svg"))]
        page = render(summary, plots, files, _command(summary))
        (folder / PAGE).write_text(page, encoding="utf-8")


def numbers(summary: Summary) -> dict[str, Any]:
    """All numbers of the report, for programs."""
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
    """What makes the results again: as the runner wrote it down, or from the configuration beside the page."""
    known = summary.results.data.get("command")
    return str(known) if known else "cuolr experiment experiment.toml --data DATA --out RESULTS"
