"""`ipw`: inverse propensity weighting, with the examination probability of each position."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt

from cuolr.config import Range
from cuolr.errors import InputError
from cuolr.examination.propensities import Propensities, known_values
from cuolr.learners.counterfactual.debiased import DebiasedConfig, DebiasedLearner
from cuolr.learners.counterfactual.pooled_clicks import PooledClicks
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.contexts import context_levels
from cuolr.logs.page_positions import at_page_positions
from cuolr.training.base_learner import LEARNERS, FitTask, SearchSpace
from cuolr.training.batches import WeightedLists
from cuolr.types import Doubles


@dataclass(frozen=True)
class IpwConfig(DebiasedConfig):
    """Settings of IPW, in addition to those of `DebiasedConfig`.

    Attributes:
        policy_aware: Whether to weight by the mean examination over the positions at which a document was shown; for
            logs with stochastic rankings.
        max_weight: Upper limit on the weight of a click.
    """

    policy_aware: bool = False
    max_weight: Annotated[float, Range(1)] = 100.0


@LEARNERS.register("ipw")
class IPW(DebiasedLearner):
    """The list-wise softmax loss with each click weighted by 1 / θ_k, θ_k the examination relative to position 1.

    Appendix A; Joachims et al. 2017, "Unbiased learning-to-rank with biased feedback". Policy-aware, the weight is
    1 / Σ_k P(d at k)·θ_k (Oosterhuis and de Rijke 2020), with P(d at k) estimated from the log. Rewards are weighted
    as clicks are.
    """

    Config = IpwConfig
    config: IpwConfig
    takes_propensities = True
    search_space: ClassVar[SearchSpace] = {**DebiasedLearner.search_space, "learner.max_weight": (10.0, 100.0)}

    def weighted_lists(self, task: FitTask) -> WeightedLists:
        """The aggregated lists, each click or reward divided by its examination probability."""
        log = at_page_positions(task.log)
        examination = relative_examination(log, task.propensities)
        examined = _mean_examination(log, examination) if self.config.policy_aware else examination
        return WeightedLists.of(log, log.rewards / np.maximum(examined, 1 / self.config.max_weight))

    def pooled_clicks(self, task: FitTask, lists: WeightedLists) -> PooledClicks:
        """Policy-aware, clicks by the sum of examination: a document is in no list that does not show it."""
        if not self.config.policy_aware:
            return super().pooled_clicks(task, lists)
        log = at_page_positions(task.log)
        examination = relative_examination(log, task.propensities)
        return PooledClicks.of_log(log, examination, self.config.max_weight, task.held_out)


def relative_examination(log: ClickLog, propensities: Propensities | None, learner: str = "ipw") -> Doubles:
    """[K] θ, the examination of each position relative to the first; or [M, K], by level of context.

    Args:
        log: The log; it needs the column `examination` if no propensities are given.
        propensities: Examination by position.
        learner: The name of the learner, for error messages.
    """
    if propensities is not None:
        if propensities.examination is None:
            raise InputError(f"propensities: {learner} needs 'examination', found none")
        values = known_values(propensities.examination, log.k, "propensities: examination")
    elif log.examination is not None:
        return _mean_by_context(log, log.examination)
    else:
        raise InputError(
            f"{learner} needs the examination probability of each position: give propensities. `cuolr propensity` "
            "estimates them from a log in random order; `cuolr simulate --randomised-lists` saves them with a "
            "simulated log"
        )
    return _relative(values)


def _mean_by_context(log: ClickLog, examined: npt.NDArray[Any]) -> Doubles:
    """[K] the mean examination of each position, relative to the first; [M, K] if there are levels of context."""
    levels, level = context_levels(log)
    tables = []
    for number in range(len(levels)):
        rows = level == number if len(levels) > 1 else slice(None)
        shown = log.where[rows] * log.count[rows, None]
        tables.append(_relative((examined[rows] * shown).sum(axis=0) / np.maximum(shown.sum(axis=0), 1)))
    return tables[0] if len(levels) == 1 else np.stack(tables)[level]


def _relative(values: Doubles) -> Doubles:
    if not values[0]:
        raise InputError(
            "propensities: the examination of position 1 is 0; it must be above 0, as the others are relative to it"
        )
    relative: Doubles = values / values[0]
    return relative


def _mean_examination(log: ClickLog, examination: Doubles) -> Doubles:
    """[M, K] Σ_k P(d at k)·θ_k of each shown document, P(d at k) the share of the query's sessions that show d at k."""
    candidates = log.candidates
    rows = candidates.offsets[log.query, None] + np.maximum(log.ranking, 0)
    exposure = (log.where * log.count[:, None] * examination).ravel()
    total = np.bincount(rows.ravel(), weights=exposure, minlength=candidates.n_documents)
    sessions = np.bincount(log.query, weights=log.count, minlength=candidates.n_queries)
    mean: Doubles = total[rows] / sessions[log.query, None]
    return mean
