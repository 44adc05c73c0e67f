"""`regression-em`: position bias by regression-based EM from clicks, then inverse propensity weighting."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from cuolr.config import Range
from cuolr.examination.regression_based_em import EmSettings, fit_examination
from cuolr.learners.counterfactual.debiased import ExposureLearner
from cuolr.learners.counterfactual.debiased_config import DebiasedConfig
from cuolr.learners.counterfactual.pooled_clicks import PooledClicks
from cuolr.logs.page_positions import at_page_positions
from cuolr.logs.scaled_documents import ScaledDocuments
from cuolr.training.base_learner import LEARNERS, FitTask, SearchSpace


@dataclass(frozen=True)
class RegressionEmConfig(DebiasedConfig):
    """Settings of regression-EM, in addition to those of `DebiasedConfig`.

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


@LEARNERS.register("regression-em")
class RegressionEM(ExposureLearner):
    """Clicks / Σ θ_k of each document, with the examination θ of positions by regression-based EM.

    The position-based model, P(C = 1) = θ_k·γ(q, d), with γ predicted from features: Wang et al. 2018, "Position bias
    estimation for unbiased learning to rank in personal search". Propensities are not needed. Examination is estimated
    from clicks; rewards are weighted as clicks are.
    """

    Config = RegressionEmConfig
    config: RegressionEmConfig
    search_space: ClassVar[SearchSpace] = {**ExposureLearner.search_space, "learner.em_learning_rate": (1e-3, 3e-3)}

    def exposed_clicks(self, task: FitTask) -> PooledClicks:
        """The clicks of each list, by the examination of their positions."""
        config, log = self.config, at_page_positions(task.log)
        shown = ScaledDocuments.of(log, task.normaliser)
        rows = np.flatnonzero(~np.isin(log.query, task.held_out))
        em = EmSettings(config.em_rounds, config.em_steps, config.em_learning_rate, task.config.seed)
        examination = fit_examination(log, shown, rows, em)
        return PooledClicks.of_log(log, examination, config.max_weight, task.held_out)
