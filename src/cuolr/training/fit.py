"""From a click log to a trained policy: the function behind `cuolr train`, `Ranker` and every experiment."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cuolr.data.memory import give_back_freed
from cuolr.data.normalise import Normaliser
from cuolr.errors import InputError, require_type
from cuolr.examination.propensities import Propensities
from cuolr.files import versions
from cuolr.logs.changed_candidates import MANY_QUERIES
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.importing.seen_documents import require_features
from cuolr.logs.log_meta import digest_of_clicks, fingerprint
from cuolr.logs.ray_cluster import connected
from cuolr.logs.reward_scale import on_click_scale
from cuolr.policies.policy import RankingPolicy
from cuolr.progress import Profile, Stages, no_stages
from cuolr.progress import Progress as StageProgress
from cuolr.training import distributed
from cuolr.training.base_learner import LEARNERS, FitTask
from cuolr.training.hold_out import held_out_queries, queries_shown, with_held_out_sessions
from cuolr.training.log_form import Aggregation, TrainingLog
from cuolr.training.loop import Best, Loop, Progress, TrainingResult, Validate
from cuolr.training.presets.configure import RunConfig
from cuolr.training.run_folder import RunFolder, check_place, check_to_resume
from cuolr.training.warm_start import WarmStart
from cuolr.types import Ints

# Name of the stage.
SCALING = "holding out, scaling features"


@dataclass(frozen=True)
class Validation:
    """How to choose the best policy, if not by the log.

    Attributes:
        score: The validation score of a policy, higher = better, such as its nDCG on labelled queries.
        described: A description of the score as JSON values; a run cannot be resumed with another.
    """

    score: Validate
    described: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ModelFolder:
    """Where the model, checkpoints and metrics are written.

    Attributes:
        path: The folder.
        resume: Whether to continue from its checkpoint.
        overwrite: Whether to replace a run that it already holds.
    """

    path: Path
    resume: bool = False
    overwrite: bool = False

    def check(self) -> None:
        """Raise `InputError` if the run cannot be started or resumed there."""
        if self.resume:
            distributed.from_first(partial(check_to_resume, self.path))
        else:
            distributed.from_first(partial(check_place, self.path, self.overwrite))


@dataclass(frozen=True)
class FitRequest:
    """A log, and how to train on it.

    Attributes:
        log: The log, in memory or in a folder.
        config: All settings.
        validation: How to choose the best policy; None = by the clicks or rewards on held-out queries of the log,
            or on held-out sessions if it has few queries.
        aggregation: Whether to aggregate, see `TrainingLog.read_for`.
        folder: Where to write the run; None = write nothing.
        provenance: Where the log comes from, saved with the model.
        warm_start: The model to start from; None = start anew.
        ray: Address of a Ray cluster that trains the rankers of an ensemble, or shares the trees of LambdaMART; None
            = in this process.
    """

    log: TrainingLog
    config: RunConfig
    validation: Validation | None = None
    aggregation: Aggregation = "auto"
    folder: ModelFolder | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)
    warm_start: WarmStart | None = None
    ray: str | None = None


def fit(
    request: FitRequest,
    progress: Progress | None = None,
    on_read: Callable[[ClickLog], None] | None = None,
    stages: Stages = no_stages,
    profile: Profile | None = None,
) -> TrainingResult:
    """Train a policy on a log.

    This function decides the form of the log, which queries are held out, the unit of rewards, and the propensities.

    Args:
        request: The log and the settings.
        progress: Called after each step.
        on_read: Called before training with the log, in the form that the learner reads.
        stages: Receives the progress of what comes before the first step.
        profile: Receives the time of all stages.
    """
    profile = profile or Profile()
    stages = _in_freed_memory(profile.of(stages))
    config, training = request.config, request.config.training
    learner_class = config.learner_class
    if distributed.processes() > 1 and not learner_class.data_parallel:
        raise InputError(f"{config.learner} cannot be trained by several processes; run it without torchrun")
    start = request.warm_start
    if start is not None:
        check_warm_start(config.learner, start)
        request = replace(request, log=request.log.with_features_as(start))
    log = request.log.read_for(learner_class, config.learner, request.aggregation, stages)
    require_features(log.candidates)
    if on_read is not None:
        on_read(log)
    profile.begin(SCALING)
    propensities = request.log.propensities() if learner_class.takes_propensities else None
    learned_from, held_out, validated_by = _hold_out(request, log)
    settings = {**config.as_dict(), "validated_by": dict(validated_by)}
    rewarded, unit = on_click_scale(learned_from, held_out)
    loop = Loop(
        training,
        validate=None if request.validation is None else request.validation.score,
        folder=_run_folder(request, settings, log),
        resume=request.folder is not None and request.folder.resume,
        progress=progress,
        provenance={**_provenance(request, settings, log), **_described(propensities), **_described_unit(log, unit)},
        validate_start=start is not None,
        profile=profile,
    )
    normaliser = Normaliser.fit(training.normalising, log.candidates) if start is None else start.normaliser
    with connected(request.ray) as ray:
        task = FitTask(rewarded, normaliser, held_out, training, loop, propensities, start, stages, ray)
        policy = learner_class(config.learner_config).fit(task)
    result = loop.result or _without_steps(policy, loop)
    profile.begin(None)
    if result.best is not None:
        object.__setattr__(result.best.policy, "provenance", result.provenance)  # as `load_policy` does
    return result


def _in_freed_memory(stages: Stages) -> Stages:
    """The same stages, each of which begins without the memory that those before have freed."""

    def begin(name: str, total: int | None) -> StageProgress:
        give_back_freed()
        return stages(name, total)

    return begin


def check_warm_start(learner: str, start: WarmStart) -> None:
    """Raise if a learner cannot start from a model."""
    if reason := LEARNERS.get(learner).cold_start:
        others = ", ".join(name for name in LEARNERS.names() if not LEARNERS.get(name).cold_start)
        raise InputError(f"warm_start: {learner} cannot start from a model: {reason}. Learners that can: {others}")
    if start.learner != learner:
        found = f"is of {start.learner}" if start.learner else "has no record of its learner"
        raise InputError(f"warm_start: expected a model of {learner}, but {start.name} {found}")


def _hold_out(request: FitRequest, log: ClickLog) -> tuple[ClickLog, Ints, Mapping[str, Any]]:
    """What to hold out of the log: nothing, queries, or, where there are few, sessions.

    Returns:
        The log to learn from, the queries of it that are held out, and a description as JSON values.
    """
    training = request.config.training
    if request.validation is not None:
        return log, np.empty(0, np.int64), request.validation.described
    if not request.log.example.of_sessions or len(queries_shown(log)) >= MANY_QUERIES:
        held_out = held_out_queries(log, training.held_out, training.seed)
        return log, held_out, {"held_out_queries": training.held_out}
    grouped, held_out = with_held_out_sessions(request.log.sessions(no_stages), training.held_out, training.seed)
    learned_from = TrainingLog.of(grouped).read_for(
        request.config.learner_class, request.config.learner, request.aggregation
    )
    return learned_from, held_out, {"held_out_sessions": training.held_out}


def _run_folder(request: FitRequest, settings: Mapping[str, Any], log: ClickLog) -> RunFolder | None:
    """The folder of the run; the loop creates it when training starts."""
    if request.folder is None:
        return None
    fixed = {**settings, "training": {k: v for k, v in settings["training"].items() if k != "steps"}}
    if request.warm_start is not None:
        fixed["warm_start"] = request.warm_start.described(None)["sha256"]
    return RunFolder(request.folder.path, {**fixed, "log": fingerprint(log)}, request.folder.overwrite)


def _described(propensities: Propensities | None) -> dict[str, Any]:
    return {} if propensities is None else {"propensities": asdict(propensities)}


def _described_unit(log: ClickLog, unit: float) -> dict[str, Any]:
    return {} if log.reward is None else {"reward_of_a_click": unit}


def _provenance(request: FitRequest, settings: Mapping[str, Any], log: ClickLog) -> dict[str, Any]:
    described = {**request.provenance.get("log", {}), "clicks_sha256": digest_of_clicks(log), "sessions": log.sessions}
    first, last = request.log.period() or (None, None)
    started = {} if request.warm_start is None else {"warm_start": request.warm_start.described(first)}
    described |= {} if first is None else {"first": first, "last": last}
    return {**request.provenance, "log": described, **started, "settings": dict(settings), "versions": versions()}


def _without_steps(policy: RankingPolicy, loop: Loop) -> TrainingResult:
    """The result of a learner that does not train step by step."""
    require_type("policy", policy, RankingPolicy, "fit of a learner returns one, such as LinearPolicy")
    score = None if loop.validate is None else loop.validate(policy)
    best = Best(policy, score, step=0)
    trained = {"step": 0, "validation": score, "steps": 0, "finished": True}
    provenance = {**loop.provenance, "training": trained}
    if loop.folder is not None:
        distributed.from_first(loop.folder.start)
        if distributed.is_first():
            loop.folder.publish(policy, provenance)
    return TrainingResult(best, 0, "finished", {}, provenance)
