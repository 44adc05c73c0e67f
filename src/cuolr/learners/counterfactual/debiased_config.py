"""Settings that all learners share that correct clicks for bias, and then train a ranker on them."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from cuolr.config import Range
from cuolr.learners.rankers.ensemble import EnsembleConfig
from cuolr.learners.rankers.network import NetworkConfig

RankerName = Literal["network", "lambdamart", "ensemble"]


@dataclass(frozen=True)
class DebiasedConfig(NetworkConfig):
    """Settings of the ranker, in addition to those of `NetworkConfig`, which are for `ranker = "network"`.

    Attributes:
        ranker: The ranker that is trained on the corrected clicks: network, lambdamart or ensemble.
        rankers: Settings of LambdaMART, and of the ensemble of networks, linear rankers and LambdaMART.
        include_logging_policy: Whether a model of the logging policy is a member of the ensemble.
        threads: Maximum number of threads of LightGBM.
    """

    ranker: RankerName = "network"
    rankers: EnsembleConfig = field(default_factory=EnsembleConfig)
    include_logging_policy: bool = False
    threads: Annotated[int, Range(1, 1_000)] = 2

    @property
    def without_effect(self) -> frozenset[str]:
        """The settings of other rankers than a network, if it is one; see `to_dict`."""
        others = {"ranker", "rankers", "include_logging_policy", "threads"}
        return frozenset(others) if self.ranker == "network" else frozenset()
