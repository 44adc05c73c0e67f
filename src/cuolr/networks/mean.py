"""`previous` and `position+previous`: the state is the mean of the placed documents, with the position or without."""

import torch
from torch import Tensor

from cuolr.networks.encoder import ENCODERS, NoSettings, StateEncoder
from cuolr.networks.positional import positional_encoding


def mean_of_previous(shown: Tensor) -> Tensor:
    """[B, T, F] → [B, T + 1, F] the mean of the documents before each position; 0 before the first."""
    batch, placed, n_features = shown.shape
    sums = torch.cat([shown.new_zeros(batch, 1, n_features), shown.cumsum(dim=1)], dim=1)
    return sums / torch.arange(placed + 1, device=shown.device).clamp(min=1)[:, None]


@ENCODERS.register("previous")
class PreviousEncoder(StateEncoder):
    """The mean of the placed documents: PREDOC in section 5.2."""

    Config = NoSettings

    def __init__(self, config: NoSettings, n_features: int, k: int) -> None:
        super().__init__(config, n_features, k)
        self.n_states = n_features

    def forward(self, shown: Tensor) -> Tensor:
        """[B, T, F] → [B, T + 1, F]."""
        return mean_of_previous(shown)


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
