import pytest
import torch

from cuolr.networks.encoder import build_encoder
from cuolr.networks.position import positional_encoding

SHOWN = torch.tensor([[[1.0, 4.0], [3.0, -2.0], [-1.0, 1.0]]])
MEANS = [
    [0.0, 0.0],
    [1.0, 4.0],
    [(1.0 + 3.0) / 2, (4.0 - 2.0) / 2],
    [(1.0 + 3.0 - 1.0) / 3, (4.0 - 2.0 + 1.0) / 3],
]


def test_previous_is_the_mean_of_the_documents_placed_so_far() -> None:
    states = build_encoder("previous", {}, n_features=2, k=3)(SHOWN)
    assert states[0].tolist() == [pytest.approx(mean) for mean in MEANS]


def test_position_and_previous_stand_side_by_side() -> None:
    states = build_encoder("position+previous", {}, n_features=2, k=3)(SHOWN)
    expected = torch.cat([positional_encoding(4, 2), torch.tensor(MEANS)], dim=1)
    torch.testing.assert_close(states[0], expected)
