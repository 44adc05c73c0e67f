"""`cuolr demo`: the whole pipe on generated data, in a few minutes."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from cuolr.cli.experiment import run_cells, tell_failures
from cuolr.cli.options import DataOptions
from cuolr.cli.report import report
from cuolr.cli.terminal import live_table

NAME = "demo"
MEASURE = "ndcg@10"


def demo(
    out: Path = Path("demo"), queries: int = 500, steps: int | None = None, jobs: int = os.cpu_count() or 1
) -> None:
    """Learn to rank from simulated clicks on generated data, under two click models, and compare.

    LOGGING is the ranker that showed the lists (a RankSVM trained on 1 % of the queries); ORACLE is LambdaMART trained
    on all true labels; the learners see nothing but the click log. Run again, it goes on where it stopped.

    Args:
        out: Where results and report go.
        queries: Number of training queries.
        steps: Updates of every learner, instead of 300.
        jobs: Learners that train at once, each on one core.
    """
    # These need torch, which takes a second to load.
    from cuolr.experiments.spec_file import read_experiment
    from cuolr.experiments.workers import Failure, Finished

    experiment = read_experiment(NAME)
    if steps is not None:
        experiment = replace(experiment, training={**experiment.training, "steps": steps})
    (grid,) = experiment.grid
    with live_table(f"{MEASURE}, as it comes", ["", *grid.click_model], grid.method) as put:

        def show(finished: Finished) -> None:
            cell, result = finished
            places: Sequence[str] = [cell.click_model] if cell.click_model else grid.click_model
            put(cell.method, places, "failed" if isinstance(result, Failure) else f"{result.measures[MEASURE]:.4f}")

        failures = run_cells(experiment, out, "web10k-like", queries, "", jobs, DataOptions(), show=show)
    report(out)
    tell_failures(failures, out)
