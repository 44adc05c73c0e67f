"""The report as one self-contained HTML page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from cuolr.config import to_toml
from cuolr.experiments.report.drawing import Plot, drawn
from cuolr.experiments.report.paper import DATASETS
from cuolr.experiments.report.summary import Summary
from cuolr.experiments.report.table_files import has_gaps
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
from cuolr.progress import Progress, unseen

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
    summary: Summary, plots: Sequence[Plot], files: Sequence[str], command: str, progress: Progress = unseen
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
