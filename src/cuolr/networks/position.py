"""`position`: the encoded position, without the placed documents."""

import torch
from torch import Tensor

from cuolr.networks.encoder import ENCODERS, NoSettings, StateEncoder


def positional_encoding(n_positions: int, size: int) -> Tensor:
    """Positions 1 … n as sines and cosines of decreasing frequency, section 4.

    PE(k)_{2i} = sin(k / 10000^{2i / size}) and PE(k)_{2i+1} = cos(k / 10000^{2i / size}): even and odd *dimensions*.

    >>> positional_encoding(2, 1).squeeze().tolist() == torch.tensor([1.0, 2.0]).sin().tolist()
    True

    Returns:
        [n_positions, size] row t encodes position k = t + 1.
    """
    dimension = torch.arange(size)
    even = dimension - dimension % 2
    k = torch.arange(1, n_positions + 1, dtype=torch.float64)[:, None]
    angle = k / 10_000 ** (even / size)
    return torch.where(dimension % 2 == 0, angle.sin(), angle.cos()).float()


@ENCODERS.register("position")
class PositionEncoder(StateEncoder):
    """PE(k) only, with as many dimensions as a document has features: POS in section 5.2."""

    Config = NoSettings

    def __init__(self, config: NoSettings, n_features: int, k: int) -> None:
        super().__init__(config, n_features, k)
        self.n_states = n_features

    def forward(self, shown: Tensor) -> Tensor:
        """[B, T, F] → [B, T + 1, F]."""
        batch, placed, _ = shown.shape
        return positional_encoding(placed + 1, self.n_states).to(shown).expand(batch, -1, -1)
