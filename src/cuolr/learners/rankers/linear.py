"""A linear ranker, trained with the list-wise softmax loss."""

from cuolr.data.normalise import Normaliser
from cuolr.learners.rankers.network import NetworkConfig, NetworkRanker
from cuolr.learners.rankers.targets import BatchOf


class LinearRanker(NetworkRanker):
    """A network without hidden layers: s = w · x + b, where b does not affect the ranking."""

    def __init__(
        self,
        n_features: int,
        learning_rate: float,
        max_gradient_norm: float | None,
        normaliser: Normaliser,
        batch_of: BatchOf,
    ) -> None:
        """See `NetworkRanker`."""
        super().__init__(n_features, NetworkConfig((), learning_rate, max_gradient_norm), normaliser, batch_of)
