"""`cuolr train`: a ranking policy from a click log."""

import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from cuolr.cli.assess import tell_readiness
from cuolr.cli.data_options import DataOptions
from cuolr.cli.labelled_queries import as_model_takes, labelled_queries
from cuolr.cli.terminal import say, training_bar
from cuolr.errors import InputError
from cuolr.evaluation.evaluate import score_on
from cuolr.evaluation.measures import Measure, what_counts
from cuolr.examination.propensities import PROPENSITY_FILE, read_propensities
from cuolr.logs.aggregate import aggregate_folder
from cuolr.logs.log_folder import load_click_log, read_click_log, read_meta

if TYPE_CHECKING:
    from cuolr.training.presets.configure import RunConfig

# Behind the paper's propensities, appendix A.
PAPER_LISTS = 10_000_000

Settings = Annotated[tuple[str, ...], tyro.conf.arg(name="set", metavar="NAME=VALUE"), tyro.conf.UseAppendAction]


def train(
    log: tyro.conf.Positional[Path],
    out: Path,
    learner: str | None = None,
    preset: str = "default",
    encoder: str | None = None,
    steps: int | None = None,
    batch_size: int | None = None,
    seed: int | None = None,
    precision: Literal["float32", "bfloat16"] | None = None,
    settings: Settings = (),
    propensities: Path | None = None,
    validate: Path | None = None,
    measure: str | None = None,
    data_options: DataOptions = DataOptions(),
    aggregate: Literal["auto", "yes", "no"] = "auto",
    resume: bool = False,
    overwrite: bool = False,
) -> None:
    """Train a ranking policy from a click log.

    The best policy by validation is kept: by a measure on labelled queries, where there are some, else by how well the
    sessions of held-out queries of the log are explained. Ctrl-C stops with a checkpoint. Started by torchrun, as in
    `torchrun --nproc-per-node 2 -m cuolr train …`, processes share every batch.

    Args:
        log: Folder of a click log.
        out: Folder of the model; also of metrics.jsonl and of the checkpoint.
        learner: A learner's name (`cuolr list`); by default factored, and cql with the paper's preset.
        preset: Where settings come from that are not given: default or paper.
        encoder: What makes a state of the documents placed so far (`cuolr list`).
        steps: Number of updates.
        batch_size: Lists in a batch, for learners that learn by batches.
        seed: The same seed gives the same model.
        precision: Of the products in training; bfloat16 is faster where the processor has it.
        settings: Any other setting, such as learner.conservative_weight=0.5; may be given several times.
        propensities: File with how users look at positions, for ipw and cm-ipw (see `cuolr propensity`); by default the
            one in the log's folder, and for ipw, where the log has it, its column examination.
        validate: Validate on labels: the folder of a data set, whose vali split is taken, or a LETOR file.
        measure: What to validate by, with --validate; by default ndcg@10.
        data_options: How to read what to validate on.
        aggregate: Whether sessions that were shown the same list become one row. By default they do, unless the learner
            needs each session's own clicks or the log has logging_propensity; naive, ipw and cm-ipw always learn from
            one row for each list.
        resume: Go on from the checkpoint of a run that was stopped, as if it had not been.
        overwrite: Start anew where the folder holds a model already.
    """
    # These need torch, which takes a second to load; no other command should wait for it.
    from cuolr.learners.counterfactual.naive import Naive
    from cuolr.learners.rl.sequential import SequentialLearner
    from cuolr.off_policy.assess import assess_on_own_log, digest_of_clicks
    from cuolr.training import distributed
    from cuolr.training.base_learner import LEARNERS
    from cuolr.training.fit import fit, to_be_aggregated
    from cuolr.training.loop import policy_validation
    from cuolr.training.presets.configure import configure, parse_settings, usual_learner
    from cuolr.training.run_folder import CHECKPOINT_FILE, READINESS_FILE, check_place, check_to_resume

    learner = learner or usual_learner(preset)
    flags: dict[str, Any] = {
        "learner.encoder": encoder,
        "learner.precision": precision,
        "learner.propensities": propensities and str(propensities.resolve()),
        "training.steps": steps,
        "training.batch_size": batch_size,
        "training.seed": seed,
    }
    given = {name: value for name, value in flags.items() if value is not None}
    for flag, value in (("encoder", encoder), ("precision", precision), ("propensities", propensities)):
        if value is not None and not _has_setting(learner, flag):
            others = ", ".join(name for name in LEARNERS.names() if _has_setting(name, flag))
            raise InputError(f"--{flag} {value}: {learner} takes none; give --learner, of those that do: {others}")
    with distributed.joined():
        first = distributed.is_first()
        speak: Callable[[str], None] = say if first else lambda _: None
        config = configure(learner, preset, given | parse_settings(settings))
        if measure is not None and validate is None:
            raise InputError(f"--measure {measure}: nothing is measured without --validate; give both, or neither")
        measure = str(Measure.parse(measure or "ndcg@10"))
        if batch_size is not None and not config.learner_class.learns_by_batch:
            raise InputError(f"--batch-size {batch_size}: {learner} does not learn by batches; leave it away")
        if issubclass(config.learner_class, Naive):
            if aggregate == "no":
                raise InputError(f"--aggregate no: {learner} always learns from one row for each list; leave it away")
            aggregate = aggregate if config.learner_class.needs_sessions else "yes"
        distributed.from_first(partial(check_to_resume, out) if resume else partial(check_place, out, overwrite))
        earlier = _written(out / CHECKPOINT_FILE)

        described_log = {"folder": str(log), **read_meta(log)}
        first_row = next(read_click_log(log, rows_at_a_time=1))
        config = _with_propensities(config, log, first_row.examination is not None)
        aggregated = to_be_aggregated(first_row, config.learner_class, aggregate)
        sessions = aggregate_folder(log) if aggregated else load_click_log(log)
        described_log["clicks_sha256"] = digest_of_clicks(sessions)
        speak(f"{log}: {sessions.sessions:,} sessions in {len(sessions):,} rows")
        if preset == "paper":
            for difference in _differences_from_paper(config, None if validate is None else measure):
                speak(f"note: not as in the paper: {difference}")

        validator, validated_by = None, None
        if validate is not None:
            labelled = labelled_queries(validate, data_options, "vali", [measure])
            labelled = as_model_takes(labelled, sessions.candidates.n_features, validate)
            validator = policy_validation(score_on(labelled, measure))
            validated_by = {"data": str(validate.resolve()), "fold": data_options.fold_of(validate), "measure": measure}
            speak(f"validating by {measure}, queries without a relevant document {what_counts('skip', [measure])}")
        try:
            with training_bar(config.training.steps) if first else nullcontext() as progress:
                result = fit(
                    sessions,
                    config,
                    validator,
                    validated_by,
                    out,
                    resume,
                    overwrite,
                    aggregation="no",
                    progress=progress,
                    provenance={"preset": preset, "log": described_log},
                )
        except KeyboardInterrupt:
            if not resume and _written(out / CHECKPOINT_FILE) == earlier:
                raise  # there is none, or it is of the run that was to be overwritten
            speak(f"stopped at once; go on from the last checkpoint in {out} with --resume added")
            sys.exit(130)
        if result.outcome == "interrupted":
            best = result.best
            model = "before its first model" if best is None else f"the best model so far is of step {best.step}"
            speak(f"stopped after step {result.steps}, {model}; go on from the checkpoint in {out} with --resume added")
            sys.exit(130)
        assert result.best is not None
        scored = (
            f"{measure} {result.best.score:.4f}" if validate is not None else f"held-out score {result.best.score:.4f}"
        )
        early = ", stopped early" if result.outcome == "patience" else ""
        speak(f"wrote {out}: {scored} at step {result.best.step} of {result.steps}{early}")
        if validate is None and config.training.keep == "best" and issubclass(config.learner_class, SequentialLearner):
            speak(
                "note: clicks do not tell well which step ranks best; --set training.keep=last takes the last one "
                "(docs/training.md, validation without labels)"
            )
        if first:
            found = assess_on_own_log(result.best.policy, sessions, result.provenance["settings"])
            tell_readiness(found, out / READINESS_FILE)


def _written(file: Path) -> int | None:
    """When, in nanoseconds; None = it is not there."""
    return file.stat().st_mtime_ns if file.exists() else None


def _has_setting(learner: str, name: str) -> bool:
    from cuolr.training.base_learner import LEARNERS

    return name in {field.name for field in fields(LEARNERS.get(learner).Config)}


def _with_propensities(config: "RunConfig", log: Path, has_examination: bool) -> "RunConfig":
    """The settings with the estimates that lie beside the log, for learners that take some and were given none."""
    file = log / PROPENSITY_FILE
    takes_some = getattr(config.learner_config, "propensities", "") is None
    if not takes_some or not file.is_file() or (config.learner == "ipw" and has_examination):
        return config
    return replace(config, learner_config=replace(config.learner_config, propensities=str(file.resolve())))


def _differences_from_paper(config: "RunConfig", measure: str | None) -> list[str]:
    """What the preset alone cannot set right, a line each; `measure` is None where no labels validate."""
    differences = []
    if measure != "ndcg@10":
        chosen_by = "held-out sessions, without --validate" if measure is None else measure
        differences.append(f"the model is chosen by {chosen_by}, there by ndcg@10")
    file = getattr(config.learner_config, "propensities", None)
    lists = PAPER_LISTS if file is None else read_propensities(Path(file)).lists
    # 0 = the values were given, not estimated.
    if 0 < lists < PAPER_LISTS:
        differences.append(f"the propensities are from {lists:,} random lists, there from {PAPER_LISTS:,}")
    return differences
