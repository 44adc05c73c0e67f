"""The interface of state encoders, which compute all states of a list in one pass."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor, nn

from cuolr.config import from_dict
from cuolr.networks import ENCODERS as ENCODERS


@dataclass(frozen=True)
class NoSettings:
    """The config of an encoder without settings."""


class StateEncoder(nn.Module, ABC):
    """Encodes the state s_k = [(d_1 … d_{k−1}), k] as a vector, section 4.

    `states[:, t]` is the state before document t is placed, the paper's s_{t+1}; it depends only on the documents
    before t. Training reads `[:, :K]` as states and `[:, 1:]` as next states; ranking reads `[:, -1]`.

    Attributes:
        Config: The frozen dataclass of its settings.
        n_states: S, the size of a state.
    """

    Config: ClassVar[type[Any]]
    n_states: int

    def __init__(self, config: Any, n_features: int, k: int) -> None:
        """Create an encoder with random weights, from torch's current random state.

        Args:
            config: An instance of `Config`.
            n_features: F, the number of features of a document.
            k: K, the number of positions of the longest list.
        """
        super().__init__()
        self.config = config
        self.n_features = n_features
        self.k = k

    @abstractmethod
    def forward(self, shown: Tensor) -> Tensor:
        """[B, T, F] documents in the order in which they were placed → [B, T + 1, S] states."""


def encoder_config(name: str, settings: Mapping[str, Any]) -> Any:
    """The settings of a registered encoder; an unknown name or setting raises an error that lists the known ones."""
    return from_dict(ENCODERS.get(name).Config, settings, "learner.encoder_settings")


def build_encoder(name: str, settings: Mapping[str, Any], n_features: int, k: int) -> StateEncoder:
    """A new encoder by its registered name."""
    return ENCODERS.get(name)(encoder_config(name, settings), n_features, k)
