"""`naive`: clicks as relevance labels, without any correction."""

from typing import ClassVar

from torch import Tensor

from cuolr.learners.counterfactual.listwise import ListwiseConfig, ListwiseLearner
from cuolr.learners.rankers.losses import softmax_loss
from cuolr.training.base_learner import LEARNERS, LogForm, SearchSpace
from cuolr.training.batches import SessionBatch


@LEARNERS.register("naive")
class Naive(ListwiseLearner):
    """The softmax list loss on clicks as they are: −Σ_k c_k log softmax(s)_k.

    The loss is linear in clicks, so learning from aggregated lists changes nothing but the cost and the noise.
    """

    Config = ListwiseConfig
    role = "baseline"
    log_form: ClassVar[LogForm] = "lists"
    search_space: ClassVar[SearchSpace] = {
        "learner.learning_rate": (1e-4, 3e-4, 1e-3, 3e-3),
        "training.batch_size": (64, 256),
    }

    def losses(self, batch: SessionBatch) -> dict[str, Tensor]:
        """The list loss."""
        return {"ranking_loss": softmax_loss(self.ranker(batch.features), batch.clicks, batch.where)}
