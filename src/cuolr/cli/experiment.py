"""`cuolr experiment`: run the cells of a table or figure."""

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tyro

from cuolr.cli.cell_options import CellOptions, lines_display
from cuolr.cli.options import AllFoldsOptions
from cuolr.cli.terminal import say, show_json, show_table, show_text, stage_bars
from cuolr.errors import InputError
from cuolr.logs.log_folder import SESSIONS_FILE

if TYPE_CHECKING:
    from cuolr.experiments.spec import Experiment

# The built-in experiment that has no simulated log.
REAL = "real"


def experiment(
    name: tyro.conf.Positional[str],
    cells: CellOptions,
    steps: int | None = None,
    seeds: int | None = None,
    labels: Path | None = None,
    json: bool = False,
    data_options: AllFoldsOptions = AllFoldsOptions(),
) -> None:
    """Run an experiment: every learner on the same simulated logs, measured on the same test queries.

    Each result is written as soon as its cell finishes. Run the same command again to resume; cells that failed are
    tried again. Show the results, finished or not, with `cuolr report OUT`.

    If --data is an imported log, the methods learn from those of its lists that were not in random order, and are
    judged by those that were, or by --labels: `cuolr experiment real --data LOG`.

    Args:
        name: Built-in experiment (`cuolr list`), or a TOML file.
        cells: The cells to run.
        steps: Training steps of every learner. By default those of the experiment.
        seeds: Number of runs, on data without folds. By default that of the experiment.
        labels: Relevance labels of an imported log, for evaluation only: those of Baidu-ULTR or TianGong-ST, TREC
            qrels, or a table with query_id, doc_id and label.
        json: Print a summary of the run as JSON.
        data_options: How to read a data set.
    """
    # These load torch, which takes a second.
    from cuolr.experiments.run_cells import run_cells
    from cuolr.experiments.spec_file import read_experiment

    chosen = read_experiment(name).with_changes(steps, seeds)
    if (Path(cells.data) / SESSIONS_FILE).is_file():
        _run_on_log(chosen, cells, labels, json)
        return
    if name == REAL:
        raise InputError(f"--data {cells.data}: expected the folder of an imported log; see `cuolr import-log --help`")
    if labels is not None:
        raise InputError("--labels: only with --data LOG, an imported log; data sets have labels of their own")
    summary = run_cells(cells.request(chosen, data_options), lines_display())
    say(f"show the results with: cuolr report {shlex.quote(str(summary.out))}")
    if json:
        show_json(summary.as_dict())
    summary.raise_failures()


def _run_on_log(chosen: "Experiment", cells: CellOptions, labels: Path | None, json: bool) -> None:
    from cuolr.experiments.real import RealRequest, read_summary, run_real
    from cuolr.experiments.real_data import RealData

    if cells.ray is not None:
        raise InputError("--ray: not with an imported log, whose cells run one after the other")
    with stage_bars() as stages:
        data = RealData.read(Path(cells.data), labels, stages)
        request = RealRequest(chosen, data, cells.out, cells.only, f"cuolr {shlex.join(sys.argv[1:])}")
        _, failed = run_real(request, say, stages)
    show_real(read_summary(cells.out), json)
    if failed:
        raise InputError([f"{cell}: {error}" for cell, error in failed.items()])


def show_real(content: Mapping[str, Any], json: bool) -> None:
    """Print the results of methods on a real log."""
    from cuolr.experiments.report.text_tables import real_legend, real_tables

    if json:
        show_json(dict(content))
        return
    for note in content["notes"]:
        say(f"note: {note}")
    for title, heads, rows in real_tables(content):
        show_table(title, heads, rows)
    if text := real_legend(content):
        show_text(text)
