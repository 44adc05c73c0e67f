"""`naive`: takes clicks for relevance."""

from torch import Tensor

from cuolr.learners.base import LEARNERS
from cuolr.learners.batch import SessionBatch
from cuolr.learners.listwise import ListwiseConfig, ListwiseLearner, softmax_loss


@LEARNERS.register("naive")
class Naive(ListwiseLearner):
    """The softmax list loss on clicks as they are: −Σ_k c_k log softmax(s)_k."""

    Config = ListwiseConfig

    def losses(self, batch: SessionBatch) -> dict[str, Tensor]:
        """The list loss."""
        return {"ranking_loss": softmax_loss(self.ranker(batch.features), batch.clicks, batch.where)}
