"""`regression-em`: position bias by regression-based EM from clicks, then inverse propensity weighting."""

from cuolr.examination.regression_based_em import fit_examination
from cuolr.learners.counterfactual.debiased import EmLearner
from cuolr.learners.counterfactual.pooled_clicks import PooledClicks
from cuolr.training.base_learner import LEARNERS, FitTask


@LEARNERS.register("regression-em")
class RegressionEM(EmLearner):
    """Clicks / Σ θ_k of each document, with the examination θ of positions by regression-based EM.

    The position-based model, P(C = 1) = θ_k·γ(q, d), with γ predicted from features: Wang et al. 2018, "Position bias
    estimation for unbiased learning to rank in personal search". Propensities are not needed. Examination is estimated
    from clicks; rewards are weighted as clicks are.
    """

    def exposed_clicks(self, task: FitTask) -> PooledClicks:
        """The clicks of each list, by the examination of their positions."""
        log, shown, rows, em = self.em_input(task)
        return PooledClicks.of_log(log, fit_examination(log, shown, rows, em), self.config.max_weight, task.held_out)
