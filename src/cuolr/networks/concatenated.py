"""`concatenated`: the concatenated features of the placed documents."""

from torch import Tensor
from torch.nn.functional import pad

from cuolr.errors import InputError
from cuolr.networks.encoder import ENCODERS, NoSettings, StateEncoder


@ENCODERS.register("concatenated")
class ConcatenatedEncoder(StateEncoder):
    """The features of the placed documents, concatenated, with zeros for the positions that are still free.

    Section 4 names it as a poor choice: its size grows with K, and it represents a document differently at each
    position.
    """

    Config = NoSettings

    def __init__(self, config: NoSettings, n_features: int, k: int) -> None:
        super().__init__(config, n_features, k)
        self.n_states = k * n_features

    def forward(self, shown: Tensor) -> Tensor:
        """[B, T, F] → [B, T + 1, K · F]."""
        placed, n_features = shown.shape[1:]
        if placed > self.k:
            raise InputError(
                f"encoder 'concatenated': expected at most the {self.k} documents of the training lists, "
                f"found {placed}; use a smaller k or train on longer lists"
            )
        prefixes = shown.unsqueeze(1).expand(-1, placed + 1, -1, -1)
        before = shown.new_ones(placed + 1, placed).tril(diagonal=-1)[:, :, None]
        return pad((prefixes * before).flatten(start_dim=2), (0, (self.k - placed) * n_features))
