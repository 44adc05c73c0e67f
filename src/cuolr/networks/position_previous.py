"""`position+previous`: the encoded position and the mean of the placed documents."""

import torch
from torch import Tensor

from cuolr.networks.encoder import ENCODERS, NoSettings, StateEncoder
from cuolr.networks.position import positional_encoding
from cuolr.networks.previous import mean_of_previous


@ENCODERS.register("position+previous")
class PositionPreviousEncoder(StateEncoder):
    """[PE(k) ; mean of the placed documents]: POS+PREDOC in section 5.2."""

    Config = NoSettings

    def __init__(self, config: NoSettings, n_features: int, k: int) -> None:
        super().__init__(config, n_features, k)
        self.n_states = 2 * n_features

    def forward(self, shown: Tensor) -> Tensor:
        """[B, T, F] → [B, T + 1, 2F]."""
        previous = mean_of_previous(shown)
        position = positional_encoding(previous.shape[1], self.n_features).to(shown)
        return torch.cat([position.expand_as(previous), previous], dim=2)
