"""`cql`: conservative Q-learning: soft actor-critic with a penalty on the values of actions not in the log."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch
from torch import Tensor

from cuolr.config import Range
from cuolr.learners.rl.mdp import Episodes
from cuolr.learners.rl.sac import LEARNING_RATES, SAC, SacConfig
from cuolr.networks.layers import logsumexp
from cuolr.training.base_learner import LEARNERS, SearchSpace


@dataclass(frozen=True)
class CqlConfig(SacConfig):
    """Settings of CQL, in addition to those of `SacConfig`.

    Attributes:
        conservative_weight: Weight of the conservative term; 0 = SAC.
        conservative_term: Value subtracted from the log-sum-exp of Q: that of the `logged` action, as in equation 5, or
            the `mean` over the available actions, as in the code published with the paper.
    """

    conservative_weight: Annotated[float, Range(0)] = 0.1
    conservative_term: Literal["logged", "mean"] = "logged"


@LEARNERS.register("cql")
class CQL(SAC):
    """Algorithm 1: SAC with E[log Σ_a exp Q(s, a) − Q(s, a_logged)] added for each critic, equation 5.

    Kumar et al. 2020.
    """

    Config = CqlConfig
    config: CqlConfig
    search_space: ClassVar[SearchSpace] = {**LEARNING_RATES, "learner.conservative_weight": (1e-3, 1e-2, 1e-1)}

    def q_values(self, episodes: Episodes, states: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """[K, B] Q(s, a) of the logged actions and [K, N, B] of all actions, both with a gradient."""
        if self.config.conservative_weight == 0:
            return super().q_values(episodes, states)
        q_of_actions = [critic.remaining(states, episodes.documents) for critic in self.critics]
        return [episodes.logged(q) for q in q_of_actions], q_of_actions

    def critic_terms(self, episodes: Episodes, q_of_actions: Sequence[Tensor]) -> dict[str, Tensor]:
        """The weighted conservative term, summed over the critics."""
        if self.config.conservative_weight == 0:
            return {}
        terms = [episodes.mean(logsumexp(q, episodes.actions) - self._baseline(episodes, q)) for q in q_of_actions]
        return {"conservative_loss": self.config.conservative_weight * torch.stack(terms).sum()}

    def _baseline(self, episodes: Episodes, q: Tensor) -> Tensor:
        """[K, B] the value subtracted from the log-sum-exp."""
        if self.config.conservative_term == "logged":
            return episodes.logged(q)
        return q.where(episodes.actions, 0).sum(dim=1) / episodes.actions.sum(dim=1).clamp(min=1)
