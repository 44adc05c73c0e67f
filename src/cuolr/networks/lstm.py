"""`lstm`: the output of an LSTM over the placed documents."""

from dataclasses import dataclass
from typing import Annotated

from torch import Tensor, nn
from torch.nn.functional import pad

from cuolr.config import Range, check_ranges
from cuolr.networks.encoder import ENCODERS, StateEncoder


@dataclass(frozen=True)
class LstmConfig:
    """Settings of the LSTM encoder.

    Attributes:
        size: Size of the hidden state, S.
    """

    size: Annotated[int, Range(1)] = 256

    def __post_init__(self) -> None:
        check_ranges(self)


@ENCODERS.register("lstm")
class LstmEncoder(StateEncoder):
    """The output of an LSTM that reads a zero vector and then the placed documents in order.

    Not in the paper: the recurrent alternative to attention.
    """

    Config = LstmConfig

    def __init__(self, config: LstmConfig, n_features: int, k: int) -> None:
        super().__init__(config, n_features, k)
        self.n_states = config.size
        self.lstm = nn.LSTM(n_features, config.size, batch_first=True)

    def forward(self, shown: Tensor) -> Tensor:
        """[B, T, F] → [B, T + 1, S]."""
        states: Tensor
        states, _ = self.lstm(pad(shown, (0, 0, 1, 0)))
        return states
