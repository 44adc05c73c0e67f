"""`cuolr tune`: try settings of learners on validation queries, the same number for each."""

import os
from collections import Counter
from pathlib import Path
from typing import Literal

import tyro

from cuolr.cli.experiment import run_cells, tell_failures
from cuolr.cli.options import DataOptions
from cuolr.cli.terminal import say, show_json, show_table
from cuolr.evaluation.measures import Measure
from cuolr.files import atomic_file

BEST = "best.toml"


def tune(
    learners: tyro.conf.Positional[tuple[str, ...]],
    out: Path,
    data: str = "web10k-like",
    queries: int = 1_000,
    click_models: tuple[str, ...] = ("pbm", "dcm"),
    trials: int = 8,
    search: Literal["random", "grid"] = "random",
    by: str = "ndcg@10",
    space: Path | None = None,
    only: str = "",
    steps: int = 500,
    sessions_per_query: int = 200,
    seeds: int = 1,
    seed: int = 1,
    jobs: int = os.cpu_count() or 1,
    json: bool = False,
    data_options: DataOptions = DataOptions(),
) -> None:
    """Try settings of learners on simulated logs, and write down the best of each.

    Every learner has the same number of trials, the first of which is the default preset. All trials are kept in the
    folder, which is one of an experiment; run again, it goes on where it stopped. best.toml has the best settings, to
    be put in an experiment's file.

    Args:
        learners: Names of learners (`cuolr list`).
        out: Folder of the results.
        data: The folder of a data set, or generated data (web10k-like, yahoo-like, tiny).
        queries: Training queries of generated data.
        click_models: What the logs are simulated with; a trial's score is the mean over them.
        trials: Of each learner.
        search: At random, or every combination of the space.
        by: The measure on labelled validation queries that decides; log = how well the log's held-out sessions are
            explained, which compares settings of one learner only.
        space: TOML file with the values to try; by default the package's own.
        only: Some of the folds, such as fold=1.
        steps: Updates of each trial.
        sessions_per_query: Of the logs, on average.
        seeds: Runs of each trial, where the data has no folds.
        seed: Of the random search.
        jobs: Trials that run at once, each on one core.
        json: Print the trials as JSON instead of a table.
        data_options: How to read a data set.
    """
    # These need torch, which takes a second to load.
    from cuolr.experiments.results import read_results
    from cuolr.experiments.spec import Experiment, Grid
    from cuolr.experiments.tune import SPACES, best_toml, read_spaces, trials_of, tuning

    by = by if by == "log" else str(Measure.parse(by))
    base = Experiment(
        title=f"Tuning {', '.join(learners)}",
        grid=(Grid((), click_models, sessions_per_query=(sessions_per_query,)),),
        measures=("ndcg@10",) if by == "log" else tuple(dict.fromkeys((by, "ndcg@10"))),
        validation=by,
        split="vali",
        seeds=seeds,
        training={"steps": steps, "validate_every": 25, "patience": 8},
    )
    experiment = tuning(learners, read_spaces(space or SPACES), trials, search, seed, base)
    tried = Counter(method.learner for method in experiment.method.values())
    for learner, number in tried.items():
        if number < trials:
            say(f"{learner}: {number} trials, as there is nothing more to try of it")
    failures = run_cells(experiment, out, data, queries, only, jobs, data_options)
    finished = trials_of(read_results(out))
    if not finished:
        tell_failures(failures, out)
    with atomic_file(out / BEST) as unfinished:
        unfinished.write_text(best_toml(finished), encoding="utf-8")
    say(f"wrote {out / BEST}")
    if json:
        trials_as_json = [
            {
                "learner": trial.learner,
                "score": trial.score,
                "settings": dict(trial.settings),
                "runs": {str(cell): score for cell, score in trial.scores.items()},
            }
            for trial in finished
        ]
        show_json({"by": by, "best": str(out / BEST), "trials": trials_as_json})
    else:
        rows = [
            [t.learner, f"{t.score:.4f}", ", ".join(f"{k}={v}" for k, v in t.settings.items()) or "(preset)"]
            for t in finished
        ]
        show_table(f"mean of {by} on validation, best first", ["learner", by, "settings"], rows, left=(0, 2))
    tell_failures(failures, out)
