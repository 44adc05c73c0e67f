"""`naive`: takes clicks for relevance."""

from torch import Tensor

from cuolr.learners.counterfactual.listwise import ListwiseConfig, ListwiseLearner, softmax_loss
from cuolr.logs.aggregate import aggregate
from cuolr.logs.clicklog import ClickLog
from cuolr.training.base_learner import LEARNERS
from cuolr.training.batches import SessionBatch


@LEARNERS.register("naive")
class Naive(ListwiseLearner):
    """The softmax list loss on clicks as they are: −Σ_k c_k log softmax(s)_k."""

    Config = ListwiseConfig

    def prepare(self, log: ClickLog) -> ClickLog:
        """The log, aggregated: the loss is linear in clicks, so this changes nothing but the cost and the noise."""
        return log if log.aggregated else aggregate(log)

    def losses(self, batch: SessionBatch) -> dict[str, Tensor]:
        """The list loss."""
        return {"ranking_loss": softmax_loss(self.ranker(batch.features), batch.clicks, batch.where)}
