"""A network that scores each document independently."""

import copy
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn.functional import pad

from cuolr.data.normalise import Normaliser
from cuolr.networks.layers import DocumentNetwork, arrays_of, rebuild
from cuolr.policies.policy import POLICIES, ScaledScoringPolicy
from cuolr.types import Floats

# Number of documents scored at a time. Always the same: products of another shape round differently, and the score of a
# document would depend on the documents around it.
DOCUMENTS_AT_A_TIME = 1_024


@POLICIES.register("network")
class NetworkPolicy(ScaledScoringPolicy):
    """Scores a document by a network on its normalised features.

    Attributes:
        network: The network that scores scaled documents.
        normaliser: Fitted on the training candidates.
    """

    def __init__(self, network: DocumentNetwork, normaliser: Normaliser) -> None:
        self.network = network
        self.normaliser = normaliser

    def snapshot(self) -> Self:
        """A deep copy, which further training does not change."""
        return copy.deepcopy(self)

    @property
    def n_features(self) -> int:
        """The number of features of the network, without indicators of missing values."""
        return self.network.n_features - self.normaliser.n_indicators

    @torch.inference_mode()
    def score_scaled(self, features: Floats) -> Floats:
        """[n] the network's output."""
        scores = np.empty(len(features), np.float32)
        for start in range(0, len(features), DOCUMENTS_AT_A_TIME):
            documents = torch.from_numpy(features[start : start + DOCUMENTS_AT_A_TIME])
            missing = DOCUMENTS_AT_A_TIME - len(documents)
            scored = self.network(pad(documents, (0, 0, 0, missing)))
            scores[start : start + len(documents)] = scored[: len(documents)].numpy()
        return scores

    def networks(self) -> dict[str, nn.Module]:
        """The network, by name."""
        return {"network": self.network}

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The weights of the network, and the range of each feature."""
        return arrays_of("network", self.network) | self.normaliser.arrays()

    def settings(self) -> dict[str, Any]:
        """The sizes of the network, and how features are normalised."""
        sizes = {"n_features": self.network.n_features, "hidden": list(self.network.hidden)}
        return sizes | self.normaliser.settings()

    @classmethod
    def from_parts(cls, arrays: Mapping[str, npt.NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        """Rebuild a policy from its `arrays` and `settings`."""
        n_features, hidden = int(settings["n_features"]), tuple(int(size) for size in settings["hidden"])
        if len(hidden) > len(arrays):
            raise ValueError(f"hidden: expected a layer for each of the arrays, found {len(hidden)} layers")
        network = rebuild("network", lambda: DocumentNetwork(n_features, hidden), arrays)
        return cls(network, Normaliser.from_parts(arrays, settings))
