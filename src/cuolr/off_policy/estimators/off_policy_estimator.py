"""The interface of off-policy estimators: the reward of a policy's lists, from sessions of another policy."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, TypeAlias

import numpy as np

from cuolr.config import Range, check_ranges, from_dict
from cuolr.off_policy.logged_lists import Level, LoggedLists
from cuolr.registry import Registry
from cuolr.types import Doubles

ESTIMATORS: Registry[type["OffPolicyEstimator"]] = Registry(
    "off-policy estimator",
    package="cuolr.off_policy.estimators",
    entry_points="cuolr.off_policy_estimators",
    base="OffPolicyEstimator",
)

MaxWeight: TypeAlias = Annotated[float, Range(1)] | None


@dataclass(frozen=True)
class Contributions:
    """What each logged list contributes to an estimate.

    Attributes:
        values: [M] the mean over sessions is the estimate, and their variation over units is its error. For ratio
            estimators this includes the linearised denominator.
        weights: [M, K] importance weights, clipped; of no meaning where nothing is shown.
        share_clipped: Share of sessions with a clipped weight.
        assumed: [K] lowest and [K] highest reward that the estimate assumes, in effect, for a document that is
            unsupported at a position.
        centred: Whether the weights enter `values` around their own mean. A control variate then adds nothing.
    """

    values: Doubles
    weights: Doubles
    share_clipped: float
    assumed: tuple[Doubles, Doubles]
    centred: bool = False


@dataclass(frozen=True, kw_only=True)
class OffPolicyEstimator(ABC):
    """Estimates the mean reward per session of the target policy. It is its own config: frozen, settings as fields.

    Attributes:
        max_weight: Importance weights above it are clipped to it, which trades variance for bias; None = no clipping.
    """

    # The part of the list by which a reward is weighted.
    level: ClassVar[Level] = "list"
    # Whether it fits one to the features of the lists.
    has_reward_model: ClassVar[bool] = False

    max_weight: MaxWeight = None

    def __post_init__(self) -> None:
        check_ranges(self)

    @abstractmethod
    def contributions(self, lists: LoggedLists) -> Contributions:
        """What each list contributes to the estimate."""

    def clipped(self, weights: Doubles, lists: LoggedLists) -> tuple[Doubles, float]:
        """The weights [M, K] up to the maximum, and the share of sessions with a weight above it."""
        if self.max_weight is None:
            return weights, 0.0
        above = ((weights > self.max_weight) & lists.where).any(axis=1)
        return np.minimum(weights, self.max_weight), float((above * lists.count).sum() / lists.sessions)


def off_policy_estimator(name: str, **settings: Any) -> OffPolicyEstimator:
    """The estimator of that name; settings that are not given have their defaults.

    >>> off_policy_estimator("list-ips", max_weight=20)
    ListIPS(max_weight=20.0, self_normalised=False)
    """
    return from_dict(ESTIMATORS.get(name), settings)


@dataclass(frozen=True, kw_only=True)
class ImportanceWeighting(OffPolicyEstimator):
    """V̂ = 1/n Σ_i Σ_k w_{i,k} · r_{i,k}, with r_{i,k} the reward at position k in session i.

    Self-normalised (Swaminathan and Joachims 2015), by position: V̂ = Σ_k Σ_i w_{i,k} r_{i,k} / Σ_i w_{i,k} · n_k / n,
    n_k the number of sessions that show a document at position k. It has a small bias and less variance, and does not
    change with a constant that is added to all rewards.

    Attributes:
        self_normalised: Whether weights are divided by their mean at the position.
    """

    self_normalised: bool = False

    @abstractmethod
    def weights(self, lists: LoggedLists) -> Doubles:
        """[M, K] the importance weight of each position."""

    def contributions(self, lists: LoggedLists) -> Contributions:
        """Summed over positions, w · r; self-normalised, r̄_k + w̃ · (r − r̄_k), with r̄_k the estimate of position k.

        Both have the estimate as their mean over sessions. The second also has the error of the ratio, by the delta
        method.
        """
        weights, share = self.clipped(self.weights(lists), lists)
        k = lists.where.shape[1]
        if not self.self_normalised:
            return Contributions((weights * lists.reward).sum(axis=1), weights, share, (np.zeros(k), np.zeros(k)))
        total, sessions = (weights * lists.shown).sum(axis=0), lists.shown.sum(axis=0)
        relative = weights * (sessions / np.where(total > 0, total, 1.0))
        mean = (relative * lists.shown * lists.reward).sum(axis=0) / np.maximum(sessions, 1.0)
        values = np.where(lists.where, mean + relative * (lists.reward - mean), 0.0).sum(axis=1)
        return Contributions(values, weights, share, (mean, mean), centred=True)
