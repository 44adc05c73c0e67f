"""A training run with what `cuolr train` prints about it. Only the first of several processes prints."""

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from cuolr.cli.assess import recommendation_lines
from cuolr.cli.terminal import say, show_table, stage_bars, training_bar
from cuolr.data.memory import give_back_freed
from cuolr.distillation.distil import distil
from cuolr.distillation.student import StudentConfig, is_fast
from cuolr.errors import InputError
from cuolr.files import atomic_file
from cuolr.logs.clicklog import ClickLog
from cuolr.off_policy.assess import assess
from cuolr.policies.ensemble_policy import EnsemblePolicy
from cuolr.policies.model_folder import STUDENT_FOLDER, save_policy
from cuolr.progress import Profile, Stages, no_stages
from cuolr.training import distributed
from cuolr.training.fit import FitRequest, ModelFolder, check_warm_start, fit
from cuolr.training.loop import PLATEAU_SHARE, PLATEAU_VALIDATIONS, TrainingResult
from cuolr.training.loop import Progress as StepProgress
from cuolr.training.presets.configure import has_setting
from cuolr.training.run_folder import ASSESSMENT_FILE, CHECKPOINT_FILE

# Documents that the student learns from, so that it costs little beside training.
STUDENT_DOCUMENTS = 50_000
# Number of lists that the paper estimates propensities from, appendix A.
PAPER_LISTS = 10_000_000

# Why training ended before its last step.
EARLY = {
    "patience": ", stopped early",
    "plateau": f", stopped early: {PLATEAU_VALIDATIONS} validations gained less than {PLATEAU_SHARE:.0%} of all before",
}


def speak(message: str) -> None:
    """Print a message, in the first process."""
    if distributed.is_first():
        say(message)


def fit_with_messages(
    request: FitRequest, measure: str | None, student: bool = True, profiled: bool = False
) -> dict[str, Any]:
    """Train, evaluate the model on the log, make a student of it, and write all to the folder of the run.

    Args:
        request: The log and the settings, with a folder.
        measure: The measure of the validation on labels; None = held-out clicks.
        student: Whether to make a student of a model that is not fast by itself.
        profiled: Whether the result has the time of each stage.

    Returns:
        The result as JSON values.
    """
    folder, profile = request.folder, Profile()
    assert folder is not None

    def on_read(log: ClickLog) -> None:
        speak(f"{request.provenance['log']['folder']}: {log.sessions:,} sessions in {len(log):,} rows")

    if request.warm_start is not None:
        check_warm_start(request.config.learner, request.warm_start)
        speak(request.warm_start.text)
    with _stopped_at_once(folder), _bars(request.config.training.steps) as (progress, stages):
        result = fit(request, progress, on_read, stages, profile)
    _tell_result(result, request, measure)
    facts = {"out": str(folder.path), **result.provenance["training"]}
    if not distributed.is_first():
        return facts
    give_back_freed()  # by training
    with profile.during("off-policy evaluation"):
        log = request.log.sessions(no_stages)
        facts["assessment"] = _assess(result, log, folder.path)
    if student:
        with profile.during("student"):
            facts["student"] = _make_student(result, log, folder.path)
    if profiled:
        facts["profile"] = {
            stage: {"wall_seconds": wall, "cpu_seconds": cpu} for stage, (wall, cpu) in profile.seconds.items()
        }
    return facts


def show_profile(seconds: Mapping[str, Mapping[str, float]]) -> None:
    """Print the wall-clock and CPU seconds of each stage, as `fit_with_messages` returns them."""
    names = ("wall_seconds", "cpu_seconds")
    total = {name: sum(stage[name] for stage in seconds.values()) for name in names}
    rows = [
        [stage, *(f"{of_stage[name]:.2f}" for name in names), f"{of_stage[names[1]] / max(total[names[1]], 1e-9):.1%}"]
        for stage, of_stage in [*seconds.items(), ("all", total)]
    ]
    heads = ["stage", "wall seconds", "CPU seconds", "share of CPU"]
    show_table("profile", heads, rows, "CPU seconds are those of all threads of this process.")


def tell_differences_from_paper(request: FitRequest, measure: str | None) -> None:
    """Print the differences from the paper that its preset does not cover, one per line."""
    if measure != "ndcg@10":
        chosen_by = "held-out clicks, for lack of --validate" if measure is None else measure
        speak(f"note: unlike the paper, which uses ndcg@10, the model is chosen by {chosen_by}")
    propensities = request.log.propensities() if request.config.learner_class.takes_propensities else None
    lists = 0 if propensities is None else propensities.lists
    # 0 = the values were given, not estimated.
    if 0 < lists < PAPER_LISTS:
        speak(f"note: unlike the paper, which uses {PAPER_LISTS:,} random lists, propensities are from {lists:,}")


@contextmanager
def _bars(steps: int) -> Iterator[tuple[StepProgress | None, Stages]]:
    """Bars for what comes before the first step, then the bar of training; only in the first process."""
    if not distributed.is_first():
        yield None, no_stages
        return
    show: StepProgress | None = None
    with ExitStack() as shown:
        stages = shown.enter_context(stage_bars())

        def progress(step: int, values: Mapping[str, float]) -> None:
            nonlocal show
            if show is None:
                shown.close()
                show = shown.enter_context(training_bar(steps))
            show(step, values)

        yield progress, stages


@contextmanager
def _stopped_at_once(folder: ModelFolder) -> Iterator[None]:
    """After a second Ctrl-C, which ends training at once, tell how to continue."""
    file = folder.path / CHECKPOINT_FILE

    def written() -> int | None:
        return file.stat().st_mtime_ns if file.exists() else None

    earlier = written()
    try:
        yield
    except KeyboardInterrupt:
        if not folder.resume and written() == earlier:
            raise  # there is none, or it belongs to the run that is being overwritten
        speak(f"stopped at once; continue from the last checkpoint in {folder.path} with --resume")
        sys.exit(130)


def _tell_result(result: TrainingResult, request: FitRequest, measure: str | None) -> None:
    assert request.folder is not None
    best, out = result.best, request.folder.path
    if result.outcome == "interrupted":
        model = "before its first model" if best is None else f"the best model so far is of step {best.step}"
        speak(f"stopped after step {result.steps}, {model}; continue from the checkpoint in {out} with --resume")
        sys.exit(130)
    assert best is not None
    score = "" if best.score is None else f": {measure or 'held-out score'} {best.score:.4f}"
    step = f" at step {best.step} of {result.steps}" if result.steps else ""
    speak(f"wrote {out}{score}{step}{EARLY.get(result.outcome, '')}")
    if chosen := result.provenance.get("precision"):
        speak(f"precision: {chosen['chosen']}, {chosen['reason']}")
    if isinstance(best.policy, EnsemblePolicy) and best.policy.is_logging_policy:
        speak(
            "keep: clicks do not show a gain over the logging policy, or cannot be told from position bias "
            "(cuolr log-info); the model only reproduces the logging policy"
        )
    config = request.config
    if measure is None and config.training.keep == "best" and has_setting(config.learner_class, "encoder"):
        speak(
            "note: held-out clicks predict the best step poorly; --set training.keep=last keeps the last step "
            "(docs/training.md, validation without labels)"
        )


def _make_student(result: TrainingResult, log: ClickLog, out: Path) -> dict[str, Any] | None:
    """Put a student of trees beside a model that is not a single fast ranker; returns how well they agree."""
    assert result.best is not None
    teacher = result.best.policy
    if is_fast(teacher):
        return None
    try:
        with stage_bars() as stages:
            found = distil(teacher, log.candidates, "trees", StudentConfig(max_documents=STUDENT_DOCUMENTS), stages)
    except InputError as error:
        say(f"note: no student was made: {error}")
        return None
    folder = out / STUDENT_FOLDER
    save_policy(found.student, folder, found.provenance(result.provenance))
    say(
        f"wrote {folder}: trees for fast ranking, with {found.agreement:.0%} of the model's top 10 on "
        f"{found.held_out:,} other queries ({found.seconds:.1f} s)"
    )
    return {"out": str(folder), **found.described(), "seconds": found.seconds}


def _assess(result: TrainingResult, log: ClickLog, out: Path) -> dict[str, Any]:
    """The off-policy evaluation of the model on its training log, written to the run's folder."""
    assert result.best is not None
    with stage_bars() as stages:
        evaluation = assess(result.best.policy, log, provenance=result.provenance, stages=stages)
    with atomic_file(out / ASSESSMENT_FILE) as unfinished:
        unfinished.write_text(json.dumps(evaluation.as_dict(), indent=2) + "\n", encoding="utf-8")
    for line in recommendation_lines(evaluation):
        say(line)
    return evaluation.as_dict()
