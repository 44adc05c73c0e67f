"""The report as a folder: one self-contained HTML page, the tables, the plots, and the numbers as JSON."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from cuolr.config import to_dict, to_toml
from cuolr.errors import InputError
from cuolr.experiments.report.differences import difference_files
from cuolr.experiments.report.drawing import Plot, drawn, save
from cuolr.experiments.report.paper import DATASETS
from cuolr.experiments.report.plots import all_plots
from cuolr.experiments.report.summary import Summary, summarise
from cuolr.experiments.report.table_files import as_csv, has_gaps, latex, markdown, records
from cuolr.experiments.report.wording import (
    NO_VALUE,
    caption,
    count,
    duration,
    findings,
    gap_caption,
    has_marked_numbers,
    has_paper_gaps,
    measure_label,
    number_of_runs,
    paper_notes,
    paper_numbers_caption,
    percent,
    runs_word,
    setting_labels,
    state_of,
    what_was_run,
    whole_percent,
)
from cuolr.experiments.results import Results
from cuolr.experiments.results_folder import read_results
from cuolr.files import atomic_folder, refuse_existing
from cuolr.glossary import OF_EXPERIMENTS, glossary
from cuolr.json_files import read_json
from cuolr.progress import Progress, Stages, no_progress, no_stages

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Effort:
    """Training time and steps of a method."""

    method: str
    runs: int
    seconds: float
    total: float
    steps: float
    best_step: float


def render(
    summary: Summary, plots: Sequence[Plot], files: Sequence[str], command: str, progress: Progress = no_progress
) -> str:
    """The page.

    Args:
        summary: The content.
        plots: In the order of the page.
        files: Names of the files beside the page.
        command: The command that reproduces the results.
        progress: Called with 1 after each panel of a plot.
    """
    environment = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "measure": measure_label,
        "percent": percent,
        "whole_percent": whole_percent,
        "duration": duration,
        "count": count,
        "unbroken": lambda text: text.replace(" %", "\N{NO-BREAK SPACE}%"),
    }
    results = summary.results
    return environment.get_template("page.html.jinja").render(
        summary=summary,
        experiment=results.experiment,
        results=results,
        run=runs_word(summary),
        runs=number_of_runs(summary),
        what_was_run=what_was_run(summary),
        findings={
            measure: [
                (t.columns.title, " ".join(sentences)) for t in summary.tables if (sentences := findings(t, measure))
            ]
            for measure in results.experiment.measures
        },
        caption=caption,
        gap_caption=gap_caption(summary),
        has_gaps=has_gaps,
        paper_numbers_caption=paper_numbers_caption,
        has_paper_gaps=has_paper_gaps,
        state_of=state_of,
        chosen=[(setting_labels(summary)[setting], method) for (_, setting), method in summary.chosen.items()],
        notes=paper_notes(summary),
        marked=has_marked_numbers(summary),
        datasets=DATASETS,
        no_value=NO_VALUE,
        plots=[drawn(plot, f"p{i}", progress) for i, plot in enumerate(plots)],
        efforts=efforts(results),
        facts=_facts(summary),
        configuration=to_toml(results.experiment),
        files=files,
        command=command,
        glossary=glossary(OF_EXPERIMENTS),
        style=Markup((HERE / "page.css").read_text(encoding="utf-8")),
        script=Markup((HERE / "page.js").read_text(encoding="utf-8")),
    )


def efforts(results: Results) -> list[Effort]:
    """The run times of each method, in the order of the experiment."""
    methods = results.experiment.methods
    by_method = {method: [r for cell, r in results.cells.items() if cell.method == method] for method in methods}
    return [
        Effort(
            method,
            len(runs),
            float(np.mean([run.seconds for run in runs])),
            sum(run.seconds for run in runs),
            float(np.mean([run.steps for run in runs])),
            float(np.mean([run.best_step for run in runs])),
        )
        for method, runs in by_method.items()
        if runs
    ]


def _facts(summary: Summary) -> dict[str, str]:
    """The facts about the run."""
    results = summary.results
    experiment, cells = results.experiment, results.planned
    folds = sorted({cell.fold for cell in cells} - {0})
    sizes: Mapping[str, Any] = results.data.get("queries") or {}
    sessions = sorted({cell.sessions_per_query for cell in cells} - {0})
    facts = {
        "data": str(results.data["name"]),
        "queries": ", ".join(f"{size:,} {name}" for name, size in sizes.items())
        + (" in the first fold" if folds else ""),
        "folds": ", ".join(map(str, folds)),
        "seeds": ", ".join(map(str, sorted({cell.seed for cell in cells}))),
        "sessions per query": ", ".join(f"{number:,}" for number in sessions),
        "list length": str(experiment.k),
        "evaluated on": f"{experiment.split} queries",
        "best step by": "held-out clicks" if experiment.validation == "log" else f"{experiment.validation}, validation",
        "training": ", ".join(f"{name} {value}" for name, value in experiment.training.items()),
        "total training time": duration(sum(result.seconds for result in results.cells.values())),
        **results.versions,
    }
    return {name: value for name, value in facts.items() if value}


PAGE = "report.html"
# Lists the files of the report. A folder without it, or with other files, is not replaced.
NUMBERS = "report.json"


def make_report(results: Path, out: Path, stages: Stages = no_stages) -> Summary:
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


def write_report(summary: Summary, out: Path, stages: Stages = no_stages) -> None:
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
