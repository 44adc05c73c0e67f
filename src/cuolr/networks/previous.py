"""`previous`: the mean of the placed documents."""

import torch
from torch import Tensor

from cuolr.networks.encoder import ENCODERS, NoSettings, StateEncoder


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
