"""What can be evaluated off-policy: a policy with one list per query, one that draws its lists, or a fitted ranker."""

from typing import Protocol, TypeAlias

from cuolr.policies.plackett_luce import StochasticLogger
from cuolr.policies.policy import RankingPolicy
from cuolr.policies.random_policy import UniformLogger

Policy: TypeAlias = RankingPolicy | StochasticLogger | UniformLogger


class FittedRanker(Protocol):
    """A fitted `Ranker`."""

    @property
    def policy_(self) -> RankingPolicy:
        """What it learned."""
