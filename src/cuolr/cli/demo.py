"""`cuolr demo`: a small experiment on generated data, in a few minutes."""

import os
from pathlib import Path

from cuolr.cli.cell_options import CellOptions, table_display
from cuolr.cli.options import DataOptions
from cuolr.cli.report import show_report, show_summary
from cuolr.cli.terminal import say
from cuolr.errors import InputError

NAME, DATA, MEASURE = "demo", "web10k-like", "ndcg@10"


def demo(
    out: Path = Path("demo"),
    queries: int = 500,
    steps: int | None = None,
    jobs: int = os.cpu_count() or 1,
    json: bool = False,
) -> None:
    """Learn to rank from simulated clicks on generated data, under two click models, and compare.

    LOGGING is the ranker that showed the lists, a RankSVM trained on 1 % of the queries. ORACLE is LambdaMART trained
    on all true labels. The learners see the click log only. Run it again to resume.

    Args:
        out: Folder of the results and the report.
        queries: Number of training queries.
        steps: Training steps of every learner. By default 300.
        jobs: Number of learners that train at once, each on one core.
        json: Print the numbers as JSON instead of a table.
    """
    # These load torch, which takes a second.
    from cuolr.experiments.run_cells import run_cells
    from cuolr.experiments.spec_file import read_experiment

    experiment = read_experiment(NAME).with_changes(steps)
    cells = CellOptions(out, DATA, queries, jobs=jobs)
    summary = run_cells(cells.request(experiment, DataOptions()), table_display(experiment, MEASURE))
    _show(out, json)
    summary.raise_failures()


def _show(out: Path, json: bool) -> None:
    """Write the report and print its table; without what draws plots, print the table alone."""
    from cuolr.examination.plot import require_matplotlib

    try:
        require_matplotlib()
    except InputError as missing:
        from cuolr.experiments.report.summary import summarise
        from cuolr.experiments.results_folder import read_results

        show_summary(summarise(read_results(out)), json)
        say(f"no report: {missing}, and run `cuolr report {out}`")
    else:
        show_report(out, out / "report", json)
