"""`ipw`: inverse propensity weighting, for users who look at a position whatever is shown there."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from cuolr.errors import InputError
from cuolr.examination.propensities import known_values, read_propensities
from cuolr.learners.counterfactual.listwise import ListwiseConfig
from cuolr.learners.counterfactual.naive import Naive
from cuolr.learners.gradient import expect
from cuolr.logs.clicklog import ClickLog
from cuolr.training.base_learner import LEARNERS
from cuolr.types import Doubles


@dataclass(frozen=True)
class IpwConfig(ListwiseConfig):
    """Settings of IPW, on top of those of `ListwiseConfig`.

    Attributes:
        propensities: The file with the examination of each position; none = the log's own column `examination`.
        policy_aware: Weight by a document's examination over all positions that the logger showed it at; for logs
            whose rankings were drawn at random.
        max_weight: No click counts more than this.
    """

    propensities: str | None = None
    policy_aware: bool = False
    max_weight: float = 100.0

    def __post_init__(self) -> None:
        super().__post_init__()
        expect(self, max_weight=(1, float("inf")))


@LEARNERS.register("ipw")
class InversePropensityWeighting(Naive):
    """The softmax list loss with each click weighted by w_k = 1 / θ_k, θ_k the examination relative to position 1.

    Appendix A; Joachims et al. 2017, "Unbiased learning-to-rank with biased feedback". Policy-aware, the weight is
    1 / Σ_k P(d at k)·θ_k (Oosterhuis and de Rijke 2020), with P(d at k) as often as the log shows it.
    """

    Config = IpwConfig
    config: IpwConfig

    def prepare(self, log: ClickLog) -> ClickLog:
        """The log, aggregated, with weighted clicks."""
        lists = super().prepare(log)
        examination = self.examination(lists)
        looked_at = _mean_examination(lists, examination) if self.config.policy_aware else examination
        return replace(lists, clicks=lists.clicks / np.maximum(looked_at, 1 / self.config.max_weight))

    def examination(self, log: ClickLog) -> Doubles:
        """[K] θ, the examination of each position relative to the first."""
        if self.config.propensities is not None:
            estimate = read_propensities(Path(self.config.propensities)).examination
            if estimate is None:
                raise InputError(f"{self.config.propensities}: expected 'examination', found none; ipw needs it")
            values = known_values(estimate, log.k, f"{self.config.propensities}: examination")
        elif log.examination is not None:
            shown = log.where * log.count[:, None]
            values = (log.examination * shown).sum(axis=0) / np.maximum(shown.sum(axis=0), 1)
        else:
            raise InputError(
                "ipw needs to know how often users look at each position: simulate the log with --randomised-lists, "
                "or give a file with --propensities (in Python, settings={'learner.propensities': FILE}); "
                "`cuolr propensity` makes one from a log in random order"
            )
        if not values[0]:
            where = self.config.propensities or "the log"
            raise InputError(f"{where}: examination of position 1: ipw takes the others relative to it, found 0")
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
