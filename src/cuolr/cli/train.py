"""`cuolr train`: train a ranking policy from a click log."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from cuolr.cli.cell_options import Address
from cuolr.cli.options import DataOptions, TimeFlags, as_model_takes
from cuolr.cli.terminal import show_json
from cuolr.errors import InputError
from cuolr.evaluation.evaluate import score_on
from cuolr.evaluation.measures import Measure, what_counts
from cuolr.logs.log_folder import read_click_log, read_meta
from cuolr.output_lock import hold

if TYPE_CHECKING:
    from cuolr.training.fit import Validation
    from cuolr.training.presets.configure import RunConfig
    from cuolr.training.warm_start import WarmStart

Settings = Annotated[tuple[str, ...], tyro.conf.arg(name="set", metavar="NAME=VALUE"), tyro.conf.UseAppendAction]


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
    precision: Literal["float32", "bfloat16", "auto"] | None = None
    """Precision of matrix products in training; bfloat16 is faster on processors that support it. auto takes it there,
    if the losses of the first batch are the same but for rounding."""
    settings: Settings = ()
    """Any other setting, such as learner.conservative_weight=0.5."""

    def configure(self, propensities: Path | None) -> "RunConfig":
        """All settings of the run; raises if the learner does not use an option."""
        from cuolr.training.presets.configure import check_used, configure, parse_settings, usual_learner

        name = self.learner or usual_learner(self.preset)
        options = {"encoder": self.encoder, "precision": self.precision, "batch_size": self.batch_size}
        for option, value in {**options, "propensities": propensities}.items():
            if value is not None:
                check_used(name, option, f"--{option.replace('_', '-')} {value}", "--learner")
        given: dict[str, Any] = {
            "learner.encoder": self.encoder,
            "learner.precision": self.precision,
            "training.steps": self.steps,
            "training.batch_size": self.batch_size,
            "training.seed": self.seed,
        }
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

    def load(self, n_features: int, speak: Callable[[str], None]) -> "Validation | None":
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
    warm_start: Annotated[Path | None, tyro.conf.arg(metavar="MODEL")] = None
    """Start from the weights of this model, of the same learner and features, such as last week's."""
    no_student: bool = False
    """Make no student, the fast model of trees that is put beside a slower one (see `cuolr distil`)."""
    profile: bool = False
    """Print the wall-clock and CPU time of each stage at the end."""
    ray: Address | None = None
    """Address of a Ray cluster that trains the rankers of factored or of an ensemble, with the same result. With
    learner.ranker=lambdamart, its nodes share the documents: each reads its own from the log, by the same path, and
    all grow the same trees. Needs `pip install 'cuolr[ray]'`."""
    window: TimeFlags = field(default_factory=TimeFlags)

    def start(self) -> "WarmStart | None":
        """The model to start from."""
        from cuolr.training.warm_start import WarmStart

        return None if self.warm_start is None else WarmStart.read(self.warm_start)


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
    is how well the model explains the clicks on held-out queries of the log. A model that is not a single fast ranker
    gets one beside it, in the folder student. Ctrl-C stops with a checkpoint. With
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
    # What cannot be written or read is refused before torch is loaded; processes of torchrun do so together.
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        hold(out)
        next(read_click_log(log, rows_at_a_time=1, ids=False, documents=True))
    # These need torch, which takes a second to load; no other command should wait for it.
    from cuolr.cli.train_messages import fit_with_messages, show_profile, speak, tell_differences_from_paper
    from cuolr.training import distributed
    from cuolr.training.fit import FitRequest, ModelFolder
    from cuolr.training.log_form import TrainingLog
    from cuolr.training.presets.configure import check_used

    with distributed.joined():
        config, measure = learning.configure(propensities), validation.parse()
        if running.ray is not None:
            check_used(config.learner, "ray", f"--ray {running.ray}", "--learner")
        folder = ModelFolder(out, running.resume, running.overwrite)
        folder.check()
        sessions, start = TrainingLog.of_folder(log, propensities, running.window.window()), running.start()
        provenance = {"preset": learning.preset, "log": {"folder": str(log), **read_meta(log)}}
        request = FitRequest(sessions, config, None, running.aggregate, folder, provenance, start, running.ray)
        if learning.preset == "paper":
            tell_differences_from_paper(request, measure)
        validate = validation.load(sessions.example.candidates.n_features, speak)
        request = replace(request, validation=validate)
        result = fit_with_messages(request, measure, not running.no_student, running.profile)
        if json and distributed.is_first():
            show_json(result)
        elif "profile" in result:
            show_profile(result["profile"])
