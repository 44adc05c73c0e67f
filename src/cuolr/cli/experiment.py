"""`cuolr experiment`: run the cells of a table or figure."""

import shlex

import tyro

from cuolr.cli.cell_options import CellOptions, lines_display
from cuolr.cli.options import AllFoldsOptions
from cuolr.cli.terminal import say, show_json


def experiment(
    name: tyro.conf.Positional[str],
    cells: CellOptions,
    steps: int | None = None,
    seeds: int | None = None,
    json: bool = False,
    data_options: AllFoldsOptions = AllFoldsOptions(),
) -> None:
    """Run an experiment: every learner on the same simulated logs, measured on the same test queries.

    Each result is written as soon as its cell finishes. Run the same command again to resume; cells that failed are
    tried again. Show the results, finished or not, with `cuolr report OUT`.

    Args:
        name: Built-in experiment (`cuolr list`), or a TOML file.
        cells: The cells to run.
        steps: Training steps of every learner. By default those of the experiment.
        seeds: Number of runs, on data without folds. By default that of the experiment.
        json: Print a summary of the run as JSON.
        data_options: How to read a data set.
    """
    # These load torch, which takes a second.
    from cuolr.experiments.run_cells import run_cells
    from cuolr.experiments.spec_file import read_experiment

    chosen = read_experiment(name).with_changes(steps, seeds)
    summary = run_cells(cells.request(chosen, data_options), lines_display())
    say(f"show the results with: cuolr report {shlex.quote(str(summary.out))}")
    if json:
        show_json(summary.as_dict())
    summary.raise_failures()
