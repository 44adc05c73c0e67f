"""The base class of learners that estimate bias by regression-based EM."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from cuolr.config import Range
from cuolr.examination.regression_based_em import EmSettings
from cuolr.learners.counterfactual.debiased import ExposureLearner
from cuolr.learners.counterfactual.debiased_config import DebiasedConfig
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.page_positions import at_page_positions
from cuolr.logs.scaled_documents import ScaledDocuments
from cuolr.training.base_learner import FitTask, SearchSpace
from cuolr.types import Ints


@dataclass(frozen=True)
class EmConfig(DebiasedConfig):
    """Settings of regression-based EM, in addition to those of `DebiasedConfig`.

    Attributes:
        em_rounds: Number of rounds of EM.
        em_steps: Number of gradient steps of the regression in each round.
        em_learning_rate: Learning rate of the regression.
        max_weight: Upper limit on the weight of a click.
    """

    em_rounds: Annotated[int, Range(1, 100_000)] = 100
    em_steps: Annotated[int, Range(1, 100_000)] = 5
    em_learning_rate: Annotated[float, Range(0, 1)] = 3e-3
    max_weight: Annotated[float, Range(1)] = 100.0


class EmLearner(ExposureLearner):
    """Estimates bias on the training queries, by position on the page."""

    Config: ClassVar[type[Any]] = EmConfig
    config: EmConfig
    search_space: ClassVar[SearchSpace] = {**ExposureLearner.search_space, "learner.em_learning_rate": (1e-3, 3e-3)}

    def em_input(self, task: FitTask) -> tuple[ClickLog, ScaledDocuments, Ints, EmSettings]:
        """The log by position on the page, its documents, the rows to learn from, and the settings of EM."""
        config, log = self.config, at_page_positions(task.log)
        rows = np.flatnonzero(~np.isin(log.query, task.held_out))
        em = EmSettings(config.em_rounds, config.em_steps, config.em_learning_rate, task.config.seed)
        return log, ScaledDocuments.of(log, task.normaliser), rows, em
