"""Training in a line, for tests."""

from pathlib import Path
from typing import Any

import numpy as np

from cuolr.data.normalise import Normaliser
from cuolr.examination.propensities import Propensities
from cuolr.logs.clicklog import ClickLog
from cuolr.training.base_learner import FitTask
from cuolr.training.fit import FitRequest, ModelFolder, Validation, fit
from cuolr.training.log_form import TrainingLog
from cuolr.training.loop import Loop, Progress, TrainingResult, Validate
from cuolr.training.presets.configure import RunConfig
from cuolr.training.training_config import TrainingConfig
from cuolr.training.warm_start import WarmStart
from cuolr.types import Ints


def fit_log(
    log: ClickLog,
    config: RunConfig,
    score: Validate | None = None,
    propensities: Propensities | None = None,
    folder: Path | None = None,
    resume: bool = False,
    progress: Progress | None = None,
    warm_start: WarmStart | None = None,
) -> TrainingResult:
    """Train from a log in memory."""
    return fit(
        FitRequest(
            TrainingLog.of(log, propensities),
            config,
            None if score is None else Validation(score),
            folder=None if folder is None else ModelFolder(folder, resume),
            warm_start=warm_start,
        ),
        progress,
    )


def task_of(
    log: ClickLog,
    propensities: Propensities | None = None,
    held_out: Ints | None = None,
    normaliser: Normaliser | None = None,
    **training: Any,
) -> FitTask:
    """A task as `fit` makes it, by default with labels, of which nothing is known, to validate by."""
    config = TrainingConfig(**training)
    loop = Loop(config, validate=None if held_out is not None else lambda _: 0.0)
    normaliser = normaliser or Normaliser.fit("min-max", log.candidates)
    return FitTask(log, normaliser, np.empty(0, np.int64) if held_out is None else held_out, config, loop, propensities)
