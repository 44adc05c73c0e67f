"""`cuolr tune`: search the settings of learners, with the same number of trials for each."""

import tyro

from cuolr.cli.cell_options import CellOptions, lines_display
from cuolr.cli.options import AllFoldsOptions
from cuolr.cli.terminal import say, show_json, show_table
from cuolr.experiments.tuning_settings import Search, TuningRuns


def tune(
    learners: tyro.conf.Positional[tuple[str, ...]],
    cells: CellOptions,
    search: Search = Search(),
    runs: TuningRuns = TuningRuns(),
    json: bool = False,
    data_options: AllFoldsOptions = AllFoldsOptions(),
) -> None:
    """Try settings of learners on simulated logs, and write the best of each to OUT/best.toml.

    Every learner has the same number of trials; the first is the default preset. Run the same command again to resume.
    best.toml can be pasted into an experiment's file.

    Args:
        learners: Names of learners (`cuolr list`).
        cells: The cells to run.
        search: What to try.
        runs: The runs of each trial.
        json: Print the trials as JSON instead of a table.
        data_options: How to read a data set.
    """
    # These load torch, which takes a second.
    from cuolr.experiments.run_cells import run_cells
    from cuolr.experiments.tune import base_experiment, exhausted, search_spaces, tuning
    from cuolr.experiments.tune import tune as run_trials

    experiment = tuning(learners, search_spaces(search.space), search, base_experiment(learners, runs))
    for message in exhausted(experiment, search):
        say(message)
    tuned = run_trials(experiment, lambda trials: run_cells(cells.request(trials, data_options), lines_display()))
    say(f"wrote {tuned.best}")
    validation = experiment.validation
    if json:
        trials = [trial.as_dict() for trial in tuned.trials]
        show_json({**tuned.run.as_dict(), "validation": validation, "best": str(tuned.best), "trials": trials})
    else:
        rows = [[trial.learner, f"{trial.score:.4f}", trial.settings_text] for trial in tuned.trials]
        title = f"mean {validation} on validation queries, best first"
        show_table(title, ["learner", validation, "settings"], rows, left=(0, 2))
    tuned.run.raise_failures()
