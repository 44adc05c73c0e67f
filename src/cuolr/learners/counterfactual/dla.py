"""`dla`: dual learning algorithm, which learns a ranker and examination jointly from clicks."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch
from torch import Tensor, nn

from cuolr.config import Range
from cuolr.learners.counterfactual.debiased import DebiasedConfig, check_ranker, fit_ranker
from cuolr.learners.counterfactual.joint import JointLearner
from cuolr.learners.counterfactual.pooled_clicks import PooledClicks
from cuolr.learners.rankers.base_ranker import softmax_loss
from cuolr.logs.page_positions import at_page_positions
from cuolr.networks.layers import DocumentNetwork, log_softmax
from cuolr.policies.policy import RankingPolicy
from cuolr.training.base_learner import LEARNERS, FitTask, SearchSpace
from cuolr.training.batches import SessionBatch
from cuolr.types import Doubles


@dataclass(frozen=True)
class DlaConfig(DebiasedConfig):
    """Settings of DLA, in addition to those of `DebiasedConfig`.

    Attributes:
        examination_model: Model of examination: one logit per position (`free`), or a network on the one-hot position
            with the ranker's hidden layers (`network`).
        examination_learning_rate: Learning rate of the examination model.
        max_weight: Upper limit on the weight of a click, in both losses.
        examination_steps: Number of steps of the joint model before another ranker than a network is trained.
    """

    examination_model: Literal["free", "network"] = "free"
    examination_learning_rate: Annotated[float, Range(0, 1)] = 1e-2
    max_weight: Annotated[float, Range(1)] = 100.0
    examination_steps: Annotated[int, Range(1)] = 500

    @property
    def without_effect(self) -> frozenset[str]:
        """See `DebiasedConfig`."""
        return super().without_effect | ({"examination_steps"} if self.ranker == "network" else set())


@LEARNERS.register("dla")
class DLA(JointLearner):
    """Two list-wise softmax losses, each weighted by the output of the other network, relative to position 1.

    With s the scores of the documents and e the logits of the positions: −Σ_k c_k·exp(e_1 − e_k)·log softmax(s)_k for
    the ranker, and −Σ_k c_k·exp(s_1 − s_k)·log softmax(e)_k for examination. No gradient flows through the weights.
    If the log has rewards, they are c: their mean is examination times a rate of the document, as that of clicks is.

    Ai et al. 2018, "Unbiased learning to rank with unbiased propensity estimation".

    Another ranker than the network is trained on clicks / Σ exp(e_k − e_1), with the examination that the joint model
    learned. Deviation: the paper's ranker and examination learn from each other to the end.
    """

    Config = DlaConfig
    config: DlaConfig
    search_space: ClassVar[SearchSpace] = {
        "learner.learning_rate": (1e-4, 3e-4, 1e-3, 3e-3),
        "learner.examination_learning_rate": (1e-3, 1e-2, 3e-2),
        "training.batch_size": (64, 256),
    }

    def fit(self, task: FitTask) -> RankingPolicy:
        """Learn both jointly; for another ranker, learn examination first."""
        check_ranker(task, self.config)
        if self.config.ranker == "network":
            return super().fit(task)
        examination = self.learned_examination(task)
        log = at_page_positions(task.log)
        pooled = PooledClicks.of_log(log, examination, self.config.max_weight, task.held_out)
        return fit_ranker(task, self.config, pooled.weighted_lists(), pooled)

    def learned_examination(self, task: FitTask) -> Doubles:
        """[K] exp(e_k − e_1) after `examination_steps` steps of the joint model."""
        lists = self.weighted_lists(task)
        n_features = lists.candidates.n_features + task.normaliser.n_indicators
        self.build(n_features, lists.ranking.shape[1], task.config.seed, task.normaliser)
        batches, _ = task.batches(lists)
        progress = task.stages("learning examination", self.config.examination_steps)
        for step in range(self.config.examination_steps):
            self.update(batches.at(step))
            progress(1)
        logits = self.examination().detach().double()
        examination: Doubles = (logits - logits[0]).exp().numpy()
        return examination

    def build_networks(self, k: int) -> dict[str, tuple[nn.Module, float]]:
        """The examination model."""
        self.examination = FreeLogits(k) if self.config.examination_model == "free" else PositionNetwork(k, self.config)
        return {"examination": (self.examination, self.config.examination_learning_rate)}

    def losses(self, batch: SessionBatch) -> dict[str, Tensor]:
        """The loss of the ranker and that of the examination model."""
        scores = self.ranker(batch.features)
        logits = self._logits(batch)
        ranked = batch.rewards * inverse_ratio(logits, self.config.max_weight)
        examined = batch.rewards * inverse_ratio(scores, self.config.max_weight)
        return {
            "ranking_loss": softmax_loss(scores, ranked, batch.where),
            "examination_loss": softmax_loss(logits, examined, batch.where),
        }

    @torch.no_grad()
    def held_out_scores(self, batch: SessionBatch) -> Tensor:
        """[B] Σ_k c_k log softmax(s + e)_k: how well both models together explain where clicks fall."""
        both = self.ranker(batch.features) + self._logits(batch)
        return (batch.rewards * log_softmax(both, batch.where)).sum(dim=1)

    def _logits(self, batch: SessionBatch) -> Tensor:
        """[B, K] the logits of the positions."""
        logits: Tensor = self.examination()
        return logits[: batch.rewards.shape[1]].expand_as(batch.rewards)


def inverse_ratio(logits: Tensor, max_weight: float) -> Tensor:
    """[B, K] exp(x_1 − x_k), at most `max_weight`, without gradient.

    >>> inverse_ratio(torch.tensor([[0.0, -1.0, -1000.0]]), max_weight=10)
    tensor([[ 1.0000,  2.7183, 10.0000]])
    """
    logits = logits.detach()
    return (logits[:, :1] - logits).exp().clamp(max=max_weight)


class FreeLogits(nn.Module):
    """One logit per position, initially 0."""

    def __init__(self, k: int) -> None:
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(k))

    def forward(self) -> Tensor:
        """[K] the logits."""
        return self.logits


class PositionNetwork(nn.Module):
    """Logits of the positions from a network on the one-hot position, as in appendix A of the paper."""

    def __init__(self, k: int, config: DlaConfig) -> None:
        super().__init__()
        self.network = DocumentNetwork(k, config.hidden)

    def forward(self) -> Tensor:
        """[K] the logits."""
        logits: Tensor = self.network(torch.eye(self.network.n_features))
        return logits
