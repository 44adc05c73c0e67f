"""From a click log to a trained policy: all the parts put together, for the command line and for Python alike."""

import platform
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

import cuolr
from cuolr.data.normalise import Normaliser
from cuolr.errors import InputError
from cuolr.logs.aggregate import aggregate
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.log_folder import require_sessions
from cuolr.training import distributed
from cuolr.training.base_learner import Learner
from cuolr.training.batches import Batches, fingerprint, held_out_queries, split_by_query
from cuolr.training.loop import Progress, TrainingConfig, TrainingResult, Validate, held_out_validation, train
from cuolr.training.presets.configure import RunConfig
from cuolr.training.run_folder import RunFolder
from cuolr.types import Ints

# Whether sessions that were shown the same list become one row; `auto` = where it costs nothing and helps.
Aggregation = Literal["auto", "yes", "no"]


def fit(
    log: ClickLog,
    config: RunConfig,
    validate: Validate | None = None,
    validated_by: Mapping[str, Any] | None = None,
    folder: Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    aggregation: Aggregation = "auto",
    progress: Progress | None = None,
    provenance: Mapping[str, Any] | None = None,
) -> TrainingResult:
    """Train a policy from a log.

    Args:
        log: Raw or aggregated.
        config: All settings.
        validate: How good a learner is; None = how well it explains the sessions of held-out queries of the log.
        validated_by: What `validate` looks at, as JSON can hold it; a run is not resumed with another.
        folder: Where the model, checkpoints and metrics go; None = nowhere.
        resume: Go on from the folder's checkpoint.
        overwrite: Start anew where the folder holds a run already.
        aggregation: Whether to aggregate a raw log, see `to_be_aggregated`.
        progress: Called after each step.
        provenance: Where the log comes from, to be kept with the model.
    """
    training, learner_class = config.training, config.learner_class
    if distributed.processes() > 1 and not learner_class.learns_by_batch:
        raise InputError(f"{config.learner} needs all sessions at once, so one process must do; leave torchrun away")
    if learner_class.needs_sessions:
        require_sessions(log, config.learner)
    if to_be_aggregated(log, learner_class, aggregation):
        log = aggregate(log)
    normaliser = Normaliser.fit(training.normalising, log.candidates)
    learner = learner_class(config.learner_config, log.candidates.n_features, log.k, training.seed, normaliser)
    to_hold_out: Ints = np.empty(0, np.int64)
    if validate is None:
        to_hold_out = held_out_queries(log, training.held_out, training.seed)
        learner.hold_out(to_hold_out)
    log = learner.prepare(log)

    def batches_of(rows: Ints | None) -> Batches:
        return Batches(log, normaliser, training.batch_size, training.seed, learner.max_unshown, rows)

    if validate is None:
        rows, held_out = _hold_out(log, to_hold_out, training)
        batches, validate = batches_of(rows), held_out_validation(batches_of(held_out))
        validated_by = {"held_out_queries": training.held_out}
    else:
        batches = batches_of(None)
    settings = {**config.as_dict(), "validated_by": dict(validated_by or {})}
    run_folder = None
    if folder is not None:
        fixed = {**settings, "training": {k: v for k, v in settings["training"].items() if k != "steps"}}
        run_folder = RunFolder(folder, {**fixed, "log": fingerprint(log)})
        if not resume:
            distributed.from_first(partial(run_folder.start, overwrite))
    described = {**(provenance or {}), "settings": settings, "versions": _versions()}
    return train(learner, batches, validate, training, run_folder, resume, progress, described)


def to_be_aggregated(log: ClickLog, learner: type[Learner], aggregation: Aggregation) -> bool:
    """Whether to aggregate a log, or one of which `log` is a part.

    By default, unless the learner needs each session's own clicks, or the logger drew each list at random: then hardly
    two are the same.
    """
    if log.aggregated or aggregation == "no":
        return False
    if learner.needs_sessions and aggregation == "yes":
        raise InputError(
            "this learner needs the clicks of each session; leave the log as it is, without --aggregate yes"
        )
    return aggregation == "yes" or not (learner.needs_sessions or log.logging_propensity is not None)


def _hold_out(log: ClickLog, queries: Ints, training: TrainingConfig) -> tuple[Ints, Ints]:
    """Rows to train on and rows to validate on, not more of these than asked for."""
    rows, held_out = split_by_query(log, queries)
    if len(held_out) > training.max_held_out:
        held_out = np.sort(np.random.default_rng(training.seed).choice(held_out, training.max_held_out, replace=False))
    return rows, held_out


def _versions() -> dict[str, str]:
    return {
        "cuolr": cuolr.__version__,
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "python": platform.python_version(),
    }
