"""`cuolr demo`: a small experiment on generated data, in a few minutes, and a model to try."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from cuolr.cli.cell_options import CellOptions, table_display
from cuolr.cli.options import DataOptions
from cuolr.cli.report import show_report, show_summary
from cuolr.cli.terminal import say, stage_bars
from cuolr.errors import InputError
from cuolr.logs.log_folder import read_meta, save_click_log

if TYPE_CHECKING:
    from cuolr.experiments.run_cells import RunRequest
    from cuolr.training.fit import FitRequest
    from cuolr.training.presets.configure import RunConfig

NAME, DATA, MEASURE = "demo", "web10k-like", "ndcg@10"
# The cell whose log and learner are kept, to be tried by other commands.
METHOD, CLICK_MODEL = "factored", "pbm"


def demo(
    out: Path = Path("demo"),
    queries: int = 500,
    steps: int | None = None,
    jobs: int = os.cpu_count() or 1,
    no_model: bool = False,
    json: bool = False,
) -> None:
    """Learn to rank from simulated clicks on generated data, under two click models, and compare.

    LOGGING is the ranker that showed the lists, a RankSVM trained on 1 % of the queries. ORACLE is LambdaMART trained
    on all true labels. The learners see the click log only. Run it again to resume.

    At the end, the click log of one click model is written to the folder `log`, and the default learner is trained on
    it, as `cuolr train` does: `model`. Both are for `cuolr serve`, `cuolr browse` and all other commands.

    Args:
        out: Folder of the results, the report, the log and the model.
        queries: Number of training queries.
        steps: Training steps of every learner. By default 300.
        jobs: Number of learners that train at once, each on one core.
        no_model: Write no log and no model.
        json: Print the numbers as JSON instead of a table.
    """
    # These load torch, which takes a second.
    from cuolr.experiments.run_cells import run_cells
    from cuolr.experiments.spec_file import read_experiment

    experiment = read_experiment(NAME).with_changes(steps)
    request = CellOptions(out, DATA, queries, jobs=jobs).request(experiment, DataOptions())
    summary = run_cells(request, table_display(experiment, MEASURE))
    _show(out, json)
    summary.raise_failures()
    if not no_model:
        keep_model(request)


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


def keep_model(request: "RunRequest") -> None:
    """Write the log of a cell, and train the learner of the cell on it, unless that was done before."""
    from cuolr.cli.train_messages import fit_with_messages
    from cuolr.experiments.cells import log_of_cell

    experiment, data = request.experiment, request.data()
    cells = [cell for cell in experiment.cells(data.folds) if (cell.method, cell.click_model) == (METHOD, CLICK_MODEL)]
    log, model = request.out / "log", request.out / "model"
    with stage_bars() as stages:
        stages(f"writing {log}", None)
        sessions = log_of_cell(experiment, cells[0], data.load(cells[0].fold)["train"])
        save_click_log(sessions, log, {"demo": data.name, "click_model": CLICK_MODEL}, overwrite=True)
    config = experiment.config_of(cells[0])
    assert config is not None
    training = training_on(log, model, config)
    if training is not None:
        fit_with_messages(training, None)
    say(f"next: cuolr browse {model} {log}      shows what the model would change, and why")
    say(f"      cuolr serve {model}      ranks over HTTP; needs the extra `serve`")


def training_on(log: Path, model: Path, config: "RunConfig") -> "FitRequest | None":
    """What is left to do; None if this model was trained on this log."""
    from cuolr.policies.model_folder import SETTINGS_FILE, provenance_of
    from cuolr.training.fit import FitRequest, ModelFolder
    from cuolr.training.log_form import TrainingLog

    described = {"folder": str(log), **read_meta(log)}
    if (model / SETTINGS_FILE).is_file():
        found, settings = provenance_of(model), json.loads(json.dumps(config.as_dict()))
        same_log = found.get("log", {}).get("sessions_sha256") == described["sessions_sha256"]
        if same_log and {**found.get("settings", {}), **settings} == found.get("settings"):
            return None
    folder = ModelFolder(model, overwrite=True)
    return FitRequest(TrainingLog.of_folder(log), config, folder=folder, provenance={"log": described})
