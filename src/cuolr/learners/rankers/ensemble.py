"""A cross-fitted ensemble: for each kind, one ranker per fold, trained on all other folds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np

from cuolr.config import Range, SettingError, check_ranges
from cuolr.data.normalise import Normaliser
from cuolr.learners.rankers.base_ranker import BaseRanker, at_once
from cuolr.learners.rankers.lambdamart import LambdaMartRanker, QueryGroups
from cuolr.learners.rankers.linear import LinearRanker
from cuolr.learners.rankers.network import NetworkConfig, NetworkRanker
from cuolr.learners.rankers.ray_rankers import on_cluster
from cuolr.learners.rankers.targets import Targets, TargetSampler
from cuolr.networks.layers import seeded
from cuolr.types import Ints

RankerKind = Literal["network", "linear", "lambdamart"]


@dataclass(frozen=True)
class EnsembleConfig:
    """Settings of an ensemble of rankers.

    Attributes:
        kinds: The kinds of rankers: network, linear, lambdamart.
        folds: Number of folds of the queries; each ranker is trained on all folds but one.
        hidden: Sizes of the hidden layers of a network.
        learning_rate: Learning rate of the networks.
        linear_learning_rate: Learning rate of the linear rankers.
        max_gradient_norm: Norm to which gradients are clipped; none = no clipping.
        lists_per_step: Number of lists in a gradient step of a network or a linear ranker.
        leaves: Maximum number of leaves per tree.
        tree_learning_rate: Shrinkage of each tree.
        min_documents_per_leaf: Minimum number of documents in a leaf.
        feature_fraction: Fraction of the features that are sampled for each tree.
    """

    kinds: tuple[RankerKind, ...] = ("network", "linear", "lambdamart")
    folds: Annotated[int, Range(2, 100)] = 3
    hidden: tuple[Annotated[int, Range(1)], ...] = (256, 256)
    learning_rate: Annotated[float, Range(0, 1)] = 1e-4
    linear_learning_rate: Annotated[float, Range(0, 1)] = 3e-3
    max_gradient_norm: Annotated[float, Range(above=0)] | None = 1.0
    lists_per_step: Annotated[int, Range(1, 1_000_000)] = 128
    leaves: Annotated[int, Range(2, 100_000)] = 7
    tree_learning_rate: Annotated[float, Range(1e-9, 1)] = 0.05
    min_documents_per_leaf: Annotated[int, Range(1, 1_000_000)] = 20
    feature_fraction: Annotated[float, Range(0.01, 1)] = 0.5

    def __post_init__(self) -> None:
        check_ranges(self)
        if not self.kinds or len(set(self.kinds)) < len(self.kinds):
            raise SettingError({"kinds": f"expected one or more kinds, each once, found {list(self.kinds)}"})


class CrossFittedEnsemble:
    """Rankers by kind and fold. A step is one step of each.

    Attributes:
        kinds: For each kind one ranker per fold, trained on the lists of all other folds.
    """

    def __init__(
        self,
        targets: Targets,
        fold: Ints,
        config: EnsembleConfig,
        seed: int,
        threads: int,
        normaliser: Normaliser,
        ray: Any = None,
    ) -> None:
        """Create rankers that have not taken a step.

        Args:
            targets: R lists.
            fold: [R] the fold of each list.
            config: Settings of the ensemble.
            seed: Seed of the initial weights, the batches and LightGBM.
            threads: Maximum number of rankers that take their step at the same time, on a thread each.
            normaliser: The normaliser that scaled the features.
            ray: The module `ray`, connected to a cluster on which rankers take their steps; None = in this process.
        """
        # If no other fold has a list, fit to all lists.
        others = [np.flatnonzero(fold != i) for i in range(config.folds)]
        others = [rows if len(rows) else np.arange(len(targets)) for rows in others]
        highest = float(targets.target.max())
        self._threads = threads

        def ranker(kind: RankerKind, i: int) -> BaseRanker:
            if kind == "lambdamart":
                parameters = lightgbm_parameters(config, 1, seed + i)
                return LambdaMartRanker(QueryGroups.of(targets.select(others[i]), highest), parameters, normaliser)
            batch_of = TargetSampler(targets, others[i], config.lists_per_step, seed, stream=i)
            n_features = targets.features.shape[1]
            if kind == "linear":
                rate, norm = config.linear_learning_rate, config.max_gradient_norm
                return LinearRanker(n_features, rate, norm, normaliser, batch_of)
            network = NetworkConfig(config.hidden, config.learning_rate, config.max_gradient_norm)
            return NetworkRanker(n_features, network, normaliser, batch_of)

        with seeded(seed):
            self.kinds: Sequence[Sequence[BaseRanker]] = [
                [ranker(kind, i) for i in range(config.folds)] for kind in config.kinds
            ]
        if ray is not None:
            self.kinds = on_cluster(ray, self.kinds)

    def step(self) -> dict[str, float]:
        """One step of each ranker; returns the mean loss of the gradient rankers and the number of trees."""
        begun = [ranker.begin_step() for kind in self.kinds for ranker in kind]
        logged = at_once(begun, self._threads)
        losses = [values["loss"] for values in logged if "loss" in values]
        trees = [values["trees"] for values in logged if "trees" in values]
        mean_loss = {"loss": float(np.mean(losses))} if losses else {}
        return mean_loss | ({"trees": sum(trees)} if trees else {})

    def state(self) -> dict[str, Any]:
        """The state of each ranker, by kind and fold."""
        return {f"{k}.{i}": ranker.state() for k, kind in enumerate(self.kinds) for i, ranker in enumerate(kind)}

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from `state`."""
        for k, kind in enumerate(self.kinds):
            for i, ranker in enumerate(kind):
                ranker.load_state(state[f"{k}.{i}"])


def lightgbm_parameters(config: EnsembleConfig, threads: int, seed: int) -> dict[str, Any]:
    """LightGBM's parameters for the LambdaMART rankers of an ensemble."""
    return {
        "num_leaves": config.leaves,
        "learning_rate": config.tree_learning_rate,
        "min_data_in_leaf": config.min_documents_per_leaf,
        "feature_fraction": config.feature_fraction,
        "num_threads": threads,
        "seed": seed,
    }
