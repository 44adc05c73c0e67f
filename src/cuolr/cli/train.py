"""`cuolr train`: train a ranking policy from a click log."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from cuolr.cli.assess import show_recommendation
from cuolr.cli.options import DataOptions, as_model_takes
from cuolr.cli.terminal import say, show_json, training_bar
from cuolr.errors import InputError
from cuolr.evaluation.evaluate import score_on
from cuolr.evaluation.measures import Measure, what_counts
from cuolr.examination.propensities import read_propensities
from cuolr.logs.log_folder import read_meta

if TYPE_CHECKING:
    from cuolr.logs.clicklog import ClickLog
    from cuolr.off_policy.recommendation import OffPolicyEvaluation
    from cuolr.training.fit import Validation
    from cuolr.training.log_form import TrainingLog
    from cuolr.training.loop import TrainingResult
    from cuolr.training.presets.configure import RunConfig

# Number of lists that the paper estimates propensities from, appendix A.
PAPER_LISTS = 10_000_000

Settings = Annotated[tuple[str, ...], tyro.conf.arg(name="set", metavar="NAME=VALUE"), tyro.conf.UseAppendAction]
Say = Callable[[str], None]


@dataclass(frozen=True)
class LearnerOptions:
    """The learner and its settings."""

    learner: str | None = None
    """Name of a learner (`cuolr list learners`). By default factored; cql with the paper's preset."""
    preset: str = "default"
    """Preset for settings that are not given: default or paper."""
    encoder: str | None = None
    """State encoder (`cuolr list encoders`), for learners that place one document after the other."""
    steps: int | None = None
    """Number of training steps."""
    batch_size: int | None = None
    """Number of lists in a batch, for learners that learn in batches."""
    seed: int | None = None
    """The same seed gives the same model."""
    precision: Literal["float32", "bfloat16"] | None = None
    """Precision of matrix products in training; bfloat16 is faster on processors that support it."""
    settings: Settings = ()
    """Any other setting, such as learner.conservative_weight=0.5."""

    def configure(self) -> "RunConfig":
        """All settings of the run."""
        from cuolr.training.presets.configure import configure, parse_settings, usual_learner

        name = self.learner or usual_learner(self.preset)
        given: dict[str, Any] = {
            "learner.encoder": self.encoder,
            "learner.precision": self.precision,
            "training.steps": self.steps,
            "training.batch_size": self.batch_size,
            "training.seed": self.seed,
        }
        for flag, value in (("encoder", self.encoder), ("precision", self.precision)):
            if value is not None:
                _check_taken(name, f"--{flag} {value}", partial(_has_setting, flag))
        if self.batch_size is not None:
            _check_taken(name, f"--batch-size {self.batch_size}", lambda learner: learner.data_parallel)
        given = {setting: value for setting, value in given.items() if value is not None}
        return configure(name, self.preset, given | parse_settings(self.settings))


@dataclass(frozen=True)
class ValidationOptions:
    """How the best policy is chosen."""

    validate: Path | None = None
    """Validate on labels: the folder of a data set, whose vali split is used, or a LETOR file."""
    measure: str | None = None
    """Measure to validate by, with --validate. By default ndcg@10."""
    data_options: DataOptions = field(default_factory=DataOptions)

    def parse(self) -> str | None:
        """The measure; None for validation without labels."""
        if self.validate is None and self.measure is not None:
            raise InputError(f"--measure {self.measure}: needs --validate; give both or neither")
        return None if self.validate is None else str(Measure.parse(self.measure or "ndcg@10"))

    def load(self, n_features: int, speak: Say) -> "Validation | None":
        """The score of a policy on the labelled queries; None for validation without labels."""
        from cuolr.training.fit import Validation

        measure = self.parse()
        if self.validate is None or measure is None:
            return None
        queries = self.data_options.load_labelled(self.validate, "vali", [measure])
        queries = as_model_takes(queries, n_features, self.validate)
        speak(f"validating by {measure}, queries without a relevant document {what_counts('skip', [measure])}")
        fold = self.data_options.fold_of(self.validate)
        described = {"data": str(self.validate.resolve()), "fold": fold, "measure": measure}
        return Validation(score_on(queries, measure), described)


@dataclass(frozen=True)
class RunOptions:
    """How to run the training."""

    aggregate: Literal["auto", "yes", "no"] = "auto"
    """Whether sessions that were shown the same list become one row. By default they do, unless the learner needs each
    session's own clicks or the log has logging_propensity."""
    resume: bool = False
    """Continue from the checkpoint of a run that was stopped."""
    overwrite: bool = False
    """Replace an existing model and start again."""


def train(
    log: tyro.conf.Positional[Path],
    out: Path,
    learning: LearnerOptions = LearnerOptions(),
    propensities: Path | None = None,
    validation: ValidationOptions = ValidationOptions(),
    running: RunOptions = RunOptions(),
    json: bool = False,
) -> None:
    """Train a ranking policy from a click log.

    The policy with the best validation score is kept. With --validate it is a measure on labelled queries; otherwise it
    is how well the model explains the clicks on held-out queries of the log. Ctrl-C stops with a checkpoint. With
    `torchrun --nproc-per-node 2 -m cuolr train …`, processes share every batch.

    Args:
        log: Folder of a click log.
        out: Folder of the model, its metrics.jsonl and its checkpoint.
        learning: The learner and its settings.
        propensities: File of examination probabilities, for ipw and cm-ipw (see `cuolr propensity`). By default the one
            in the log's folder or, for ipw without one, the log's column examination.
        validation: How the best policy is chosen.
        running: How to run the training.
        json: Print the result as JSON, with the off-policy evaluation of the model.
    """
    # These need torch, which takes a second to load; no other command should wait for it.
    from cuolr.training import distributed
    from cuolr.training.fit import FitRequest, ModelFolder, fit
    from cuolr.training.log_form import TrainingLog
    from cuolr.training.run_folder import check_place, check_to_resume

    with distributed.joined():
        first = distributed.is_first()
        speak: Say = say if first else lambda _: None
        config, measure = learning.configure(), validation.parse()
        resume = running.resume
        distributed.from_first(
            partial(check_to_resume, out) if resume else partial(check_place, out, running.overwrite)
        )
        sessions = TrainingLog.of_folder(log)
        if propensities is not None:
            _check_taken(config.learner, f"--propensities {propensities}", lambda known: known.takes_propensities)
            sessions = replace(sessions, propensities=partial(read_propensities, propensities))
        if learning.preset == "paper":
            _tell_differences_from_paper(config, sessions, measure, speak)
        request = FitRequest(
            sessions,
            config,
            validation.load(sessions.example.candidates.n_features, speak),
            running.aggregate,
            ModelFolder(out, resume, running.overwrite),
            {"preset": learning.preset, "log": {"folder": str(log), **read_meta(log)}},
        )
        read: list[ClickLog] = []

        def on_read(learned_from: "ClickLog") -> None:
            read.append(learned_from)
            speak(f"{log}: {learned_from.sessions:,} sessions in {len(learned_from):,} rows")

        bar = training_bar(config.training.steps) if first else nullcontext()
        with _stopped_at_once(out, resume, speak), bar as progress:
            result = fit(request, progress, on_read)
        _tell_result(result, config, out, measure, speak)
        if first:
            evaluation = _assess(result, read[0], out)
            if json:
                show_json({"out": str(out), **result.provenance["training"], "assessment": evaluation.as_dict()})


def _has_setting(name: str, learner: Any) -> bool:
    return name in {field.name for field in fields(learner.Config)}


def _check_taken(name: str, flag: str, takes: Callable[[Any], bool]) -> None:
    """Raise if the learner does not use a flag, and name the learners that do."""
    from cuolr.training.base_learner import LEARNERS

    if not takes(LEARNERS.get(name)):
        others = ", ".join(other for other in LEARNERS.names() if takes(LEARNERS.get(other)))
        raise InputError(f"{flag}: {name} does not use it; remove it, or choose another --learner: {others}")


@contextmanager
def _stopped_at_once(out: Path, resume: bool, speak: Say) -> Iterator[None]:
    """After a second Ctrl-C, which ends training at once, tell how to continue."""
    from cuolr.training.run_folder import CHECKPOINT_FILE

    def written() -> int | None:
        file = out / CHECKPOINT_FILE
        return file.stat().st_mtime_ns if file.exists() else None

    earlier = written()
    try:
        yield
    except KeyboardInterrupt:
        if not resume and written() == earlier:
            raise  # there is none, or it belongs to the run that is being overwritten
        speak(f"stopped at once; continue from the last checkpoint in {out} with --resume")
        sys.exit(130)


def _tell_result(result: "TrainingResult", config: "RunConfig", out: Path, measure: str | None, speak: Say) -> None:
    best = result.best
    if result.outcome == "interrupted":
        model = "before its first model" if best is None else f"the best model so far is of step {best.step}"
        speak(f"stopped after step {result.steps}, {model}; continue from the checkpoint in {out} with --resume")
        sys.exit(130)
    assert best is not None
    score = "" if best.score is None else f": {measure or 'held-out score'} {best.score:.4f}"
    early = ", stopped early" if result.outcome == "patience" else ""
    speak(f"wrote {out}{score} at step {best.step} of {result.steps}{early}")
    if measure is None and config.training.keep == "best" and _has_setting("encoder", config.learner_class):
        speak(
            "note: held-out clicks predict the best step poorly; --set training.keep=last keeps the last step "
            "(docs/training.md, validation without labels)"
        )


def _assess(result: "TrainingResult", log: "ClickLog", out: Path) -> "OffPolicyEvaluation":
    from cuolr.off_policy.assess import assess
    from cuolr.training.run_folder import ASSESSMENT_FILE

    assert result.best is not None
    found = assess(result.best.policy, log, provenance=result.provenance)
    show_recommendation(found, out / ASSESSMENT_FILE)
    return found


def _tell_differences_from_paper(config: "RunConfig", log: "TrainingLog", measure: str | None, speak: Say) -> None:
    """Print the differences from the paper that the preset does not cover, one per line."""
    if measure != "ndcg@10":
        chosen_by = "held-out clicks, for lack of --validate" if measure is None else measure
        speak(f"note: unlike the paper, which uses ndcg@10, the model is chosen by {chosen_by}")
    propensities = log.propensities() if config.learner_class.takes_propensities else None
    lists = 0 if propensities is None else propensities.lists
    # 0 = the values were given, not estimated.
    if 0 < lists < PAPER_LISTS:
        speak(f"note: unlike the paper, which uses {PAPER_LISTS:,} random lists, propensities are from {lists:,}")
